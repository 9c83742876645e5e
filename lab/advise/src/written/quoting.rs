//! Values in quotation marks.

/// A value in double quotes, as systemd and Dockerfiles take it.
pub(super) fn in_quotes(value: &str, dollar: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('$', dollar);
    format!("\"{escaped}\"")
}
