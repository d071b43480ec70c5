//! Arguments that a model adds to a command (`{args}`).

use crate::workspace::root::{FileError, Root, folder::Kind, path::Access};

/// Maximum number of arguments that a model may add to a command.
const MAX_ARGUMENTS: usize = 20;
/// Maximum length of one added argument, in bytes.
const MAX_BYTES: usize = 300;

/// URL schemes that programs recognize without a slash after the colon, as in `data:x`.
const SCHEMES: [&str; 6] = ["data", "file", "ftp", "http", "https", "jar"];

/// Checks the arguments that a model adds to a command. Refuses options, URLs, and paths that are
/// outside of the root folder, behind a link, or secret. The error is for the model.
///
/// Reads the file system, so it blocks the thread.
pub(super) fn check_model_arguments(arguments: &[String], root: &Root) -> Result<(), String> {
    if arguments.len() > MAX_ARGUMENTS {
        return Err(format!("At most {MAX_ARGUMENTS} args are allowed."));
    }
    for argument in arguments {
        if !is_harmless_argument(argument) {
            return Err(format!(
                "{argument:?} is not allowed in args: names and paths are allowed, options are not."
            ));
        }
        if is_url(argument) {
            return Err(format!("{argument:?} is not allowed in args: it is a URL."));
        }
        // Each part is checked, because programs read `a:b` and `a,b` as lists of paths, and `a[1]`
        // as a path with an index.
        let parts = argument.split([':', ',', '[', ']']);
        for path in parts.chain([argument.as_str()]) {
            check_path_argument(path, root)
                .map_err(|fault| format!("{argument:?} is not allowed in args: {fault}"))?;
        }
    }
    Ok(())
}

/// Returns whether an argument has 1 to [`MAX_BYTES`] bytes, does not begin with `-`, and contains
/// only letters, digits and some harmless punctuation. Other arguments may have a special meaning
/// to common programs: an option could name another program to run, `a=b` sets a variable of make,
/// and `@a` names a file with options.
fn is_harmless_argument(argument: &str) -> bool {
    let is_possible = |it: char| it.is_alphanumeric() || "_-./:,[]*".contains(it);
    !argument.is_empty()
        && argument.len() <= MAX_BYTES
        && !argument.starts_with('-')
        && argument.chars().all(is_possible)
}

/// Returns whether an argument contains `:/`, or one of the [`SCHEMES`] followed by a colon. Other
/// arguments, such as `module::name` and `task:name`, are not URLs.
fn is_url(argument: &str) -> bool {
    let mut before_colons = argument.split(':');
    before_colons.next_back();
    let is_scheme = |part: &str| SCHEMES.iter().any(|it| part.eq_ignore_ascii_case(it));
    argument.contains(":/") || before_colons.any(is_scheme)
}

fn check_path_argument(text: &str, root: &Root) -> Result<(), String> {
    if text.starts_with('/') {
        return Err("it is an absolute path. Write paths relative to the root folder.".to_owned());
    }
    let path = match root.parse_path(text, Access::Read) {
        Ok(path) => path,
        Err(fault) => return Err(fault.to_string()),
    };
    // A pattern such as `.e*` is refused, because the command could expand it to hidden or secret
    // names that this check refuses.
    let is_pattern = |name: &String| name.starts_with('.') && name.contains(['*', '[']);
    if path.names().iter().any(is_pattern) {
        return Err("it is a pattern for hidden files.".to_owned());
    }
    match root.entry_kind(&path) {
        Ok(Some(Kind::Link)) => Err(FileError::Link(path).to_string()),
        Err(fault @ FileError::Link(_)) => Err(fault.to_string()),
        // Every other argument is allowed, even if it is not the path of an existing file or cannot
        // be checked, because an argument does not have to be a path.
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
#[path = "model_arguments_tests.rs"]
mod tests;
