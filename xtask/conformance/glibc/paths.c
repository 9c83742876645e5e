/* The folder that glibc was built in, which its tests' framework prints. */
const char support_objdir_root[] = "/tmp";
const char support_srcdir_root[] = "/tmp";
const char support_install_prefix[] = "/usr";
