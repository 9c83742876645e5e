//! A setting in the forms in which it is deployed.

use crate::candidates::{Candidate, quoted};
use std::path::Path;

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Lines that a shell reads (`. FILE`).
    Shell,
    /// A drop-in for a systemd unit.
    Systemd,
    /// Lines of a Dockerfile.
    Dockerfile,
}

impl Form {
    /// By the file's name: `*.conf` and `*.service` are systemd's, `*Dockerfile*` and `*Containerfile*` are lines
    /// of a Dockerfile, everything else is for a shell.
    pub fn of(file: &Path) -> Form {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        match () {
            () if name.ends_with(".conf") || name.ends_with(".service") => Form::Systemd,
            () if name.contains("Dockerfile") || name.contains("Containerfile") => Form::Dockerfile,
            () => Form::Shell,
        }
    }
}

/// A value in double quotes, as systemd and Dockerfiles take it.
fn in_quotes(value: &str, dollar: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('$', dollar);
    format!("\"{escaped}\"")
}

/// A drop-in for a systemd unit that sets these variables.
pub fn drop_in(variables: &[(String, String)]) -> String {
    // `%` begins a specifier there, and `$` is not expanded.
    let line = |(name, value): &(String, String)| {
        let assigned = format!("{name}={}", value.replace('%', "%%"));
        format!("Environment={}\n", in_quotes(&assigned, "$"))
    };
    format!("[Service]\n{}", variables.iter().map(line).collect::<String>())
}

/// The text of the file: `about` says in a line what it is.
pub fn text(form: Form, candidate: &Candidate, command: &[String], about: &str) -> String {
    let each = |line: &dyn Fn(&str, &str) -> String| -> String {
        candidate.variables.iter().map(|(name, value)| line(name, value)).collect()
    };
    let lines = match form {
        Form::Shell => each(&|name, value| format!("export {name}={}\n", quoted(value))),
        Form::Systemd => drop_in(&candidate.variables),
        Form::Dockerfile => {
            each(&|name, value| format!("ENV {name}={}\n", in_quotes(value, "\\$")))
        }
    };
    let mut text = format!("# {about}\n{lines}");
    if !candidate.words.is_empty() {
        let line = Candidate { variables: Vec::new(), ..candidate.clone() }.line(command);
        text.push_str(&format!("# Start it as: {line}\n"));
    }
    text
}

/// The text of `/etc/tunables.conf` (glibc 2.44): settings of all programs, as `GLIBC_TUNABLES` takes them, and of
/// single ones by the name of their file. Numbers are decimal.
pub fn tunables_conf(of_all: &str, programs: &[(String, String)]) -> String {
    let lines = |setting: &str| -> String {
        let line = |(name, value): (&str, &str)| {
            let number = value.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
            let value = number.map_or_else(|| value.to_owned(), |number| number.to_string());
            format!("{name}={value}\n")
        };
        setting.split(':').filter_map(|one| one.split_once('=')).map(line).collect()
    };
    let section =
        |(program, setting): &(String, String)| format!("[proc:{program}]\n{}[]\n", lines(setting));
    let sections: String = programs.iter().map(section).collect();
    let about = "# By cachewise export glibc; ldconfig puts it in force.\n";
    format!("{about}{}{sections}", lines(of_all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates::{Acts, Kind};

    #[test]
    fn a_file_is_in_the_form_of_its_name() {
        for (name, form) in [
            ("advised.sh", Form::Shell),
            ("a/override.conf", Form::Systemd),
            ("Dockerfile.cachewise", Form::Dockerfile),
        ] {
            assert_eq!(Form::of(Path::new(name)), form, "{name}");
        }
    }

    #[test]
    fn each_form_keeps_the_value() {
        let candidate = Candidate {
            name: "x".to_owned(),
            kind: Kind::Variables,
            acts: Acts::Faults,
            variables: vec![("A".to_owned(), "1:b \"$c\" 5%".to_owned())],
            words: vec!["-m".to_owned(), "x".to_owned()],
        };
        let command = ["python3".to_owned(), "p.py".to_owned()];
        for (form, expected) in [
            (Form::Shell, "# y\nexport A='1:b \"$c\" 5%'\n"),
            (Form::Systemd, "# y\n[Service]\nEnvironment=\"A=1:b \\\"$c\\\" 5%%\"\n"),
            (Form::Dockerfile, "# y\nENV A=\"1:b \\\"\\$c\\\" 5%\"\n"),
        ] {
            let text = text(form, &candidate, &command, "y");
            assert_eq!(text, format!("{expected}# Start it as: python3 -m x p.py\n"));
        }
    }

    #[test]
    fn a_system_wide_file_has_a_section_for_each_program() {
        let programs = [(
            "redis-server".to_owned(),
            "glibc.malloc.mmap_max=0:glibc.malloc.top_pad=0x10".to_owned(),
        )];
        let text = tunables_conf("glibc.cpu.x86_non_temporal_threshold=0x4080", &programs);
        assert_eq!(
            text.lines().skip(1).collect::<Vec<_>>(),
            [
                "glibc.cpu.x86_non_temporal_threshold=16512",
                "[proc:redis-server]",
                "glibc.malloc.mmap_max=0",
                "glibc.malloc.top_pad=16",
                "[]",
            ]
        );
        assert_eq!(tunables_conf("", &[]).lines().count(), 1);
    }
}
