//! Deduplication of warnings.

use std::collections::HashMap;

use switchboard_domain::Warning;

/// Merges equal warnings into one that states their number. A conversation may have hundreds of
/// parts that a provider does not accept.
///
/// ```
/// use switchboard_domain::{Warning, WarningKind::PartDowngraded};
/// use switchboard_providers_common::merge_warnings;
///
/// let warning = |message: &str| Warning::new(PartDowngraded, message);
/// let warnings = merge_warnings(vec![warning("a"), warning("b"), warning("a")]);
/// assert_eq!(warnings, [warning("a (2 times)"), warning("b")]);
/// ```
pub fn merge_warnings(warnings: Vec<Warning>) -> Vec<Warning> {
    let mut counted: Vec<(Warning, usize)> = Vec::new();
    let mut places = HashMap::new();
    for warning in warnings {
        let key = (warning.kind, warning.message.clone());
        let place = *places.entry(key).or_insert(counted.len());
        match counted.get_mut(place) {
            Some((_, count)) => *count += 1,
            None => counted.push((warning, 1)),
        }
    }
    let merged = counted.into_iter().map(|(mut warning, count)| {
        if count > 1 {
            warning.message = format!("{} ({count} times)", warning.message);
        }
        warning
    });
    merged.collect()
}

#[cfg(test)]
mod tests {
    use switchboard_domain::WarningKind::{PartDowngraded, PartDropped};

    use super::*;

    #[test]
    fn warnings_of_different_kinds_stay_separate() {
        let (a, b) = (
            Warning::new(PartDowngraded, "x"),
            Warning::new(PartDropped, "x"),
        );
        let merged = merge_warnings(vec![a.clone(), b.clone(), b]);
        assert_eq!(merged, [a, Warning::new(PartDropped, "x (2 times)")]);
        assert_eq!(merge_warnings(Vec::new()), []);
    }
}
