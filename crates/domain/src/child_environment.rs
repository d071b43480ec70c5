//! Environment variables of this process that child processes may inherit.

use std::ffi::OsStr;

/// Variables that child processes inherit on every platform, to start and to find files and
/// certificates. None of them is a credential, so API keys are not inherited.
const COMMON: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TMPDIR",
    "TEMP",
    "TMP",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

const PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Additional variables that programs need on Windows. The names are in upper case, because Windows
/// ignores the case of variable names and [`is_inherited_variable`] compares them in upper case.
const WINDOWS: &[&str] = &[
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "USERDOMAIN",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// Returns whether a child process inherits the environment variable `name`. Returns `false` for a
/// name that is not valid Unicode.
///
/// `further` lists additional names that this kind of child process needs. On Windows, write these
/// names in upper case, because they are compared with `name` in upper case.
pub fn is_inherited_variable(name: &OsStr, further: &[&str]) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    if cfg!(windows) {
        let name = name.to_ascii_uppercase();
        let mut names = COMMON.iter().chain(WINDOWS).chain(further);
        return names.any(|known| *known == name);
    }
    let mut names = COMMON.iter().chain(further);
    names.any(|known| *known == name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
