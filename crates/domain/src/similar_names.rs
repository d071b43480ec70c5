//! Spelling suggestions ("did you mean …?") for error messages.

/// Returns the candidate that is most similar to `word`, or `None` if no candidate is similar.
pub fn find_nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Minimum Jaro-Winkler similarity of a suggestion, from 0 (nothing in common) to 1 (equal).
    // Words with an equal beginning have a higher similarity.
    const MIN_SIMILARITY: f64 = 0.8;
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Returns ` (did you mean …?)` for the end of an error message, or an empty string for `None`.
///
/// ```
/// use switchboard_domain::similar_names::{did_you_mean, find_nearest};
///
/// let meant = find_nearest("comand", ["command", "args"]);
/// assert_eq!(did_you_mean(meant), " (did you mean `command`?)");
/// assert_eq!(did_you_mean(find_nearest("banana", ["command", "args"])), "");
/// ```
pub fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| {
        format!(" (did you mean `{nearest}`?)")
    })
}

/// Returns the end of an error message about an unknown name, such as `` (did you mean `args`?).
/// Available: args, env ``. Omits the question if no known name is similar.
pub fn list_available_names(name: &str, known: &[&str]) -> String {
    format!(
        "{}. Available: {}",
        did_you_mean(find_nearest(name, known.iter().copied())),
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::find_nearest;

    #[test]
    fn only_similar_candidates_are_suggested() {
        let keys = ["command", "args", "exclude_tools"];
        assert_eq!(find_nearest("comand", keys), Some("command"));
        assert_eq!(find_nearest("excludes_tools", keys), Some("exclude_tools"));
        assert_eq!(find_nearest("banana", keys), None);
        assert_eq!(find_nearest("command", []), None);
    }
}
