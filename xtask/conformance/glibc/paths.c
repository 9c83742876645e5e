/* Where glibc was built, which its tests' framework wants to print. */
const char support_objdir_root[] = "/tmp";
const char support_srcdir_root[] = "/tmp";
const char support_install_prefix[] = "/usr";
