//! "Did you mean …", for messages that name what is wrong and the way out.

/// The candidate that is most like `word`, if any is enough like it to be what was meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Jaro-Winkler favours a common beginning, which typing errors mostly keep.
    const ENOUGH: f64 = 0.8;
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= ENOUGH)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// ` (did you mean …?)` to follow what is wrong, or nothing.
///
/// ```
/// use switchboard_domain::nearest::{did_you_mean, nearest};
///
/// let meant = nearest("comand", ["command", "args"]);
/// assert_eq!(did_you_mean(meant), " (did you mean `command`?)");
/// assert_eq!(did_you_mean(nearest("banana", ["command", "args"])), "");
/// ```
pub fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| {
        format!(" (did you mean `{nearest}`?)")
    })
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typing_error_finds_its_word_and_another_word_finds_none() {
        let keys = ["command", "args", "exclude_tools"];
        assert_eq!(nearest("comand", keys), Some("command"));
        assert_eq!(nearest("excludes_tools", keys), Some("exclude_tools"));
        assert_eq!(nearest("banana", keys), None);
        assert_eq!(nearest("command", []), None);
    }
}
