//! Warnings, each said once.

use std::collections::HashMap;

use switchboard_domain::Warning;

/// Warnings in their order, equal ones as one that says how often: a conversation may hold hundreds of
/// parts that a wire does not take.
///
/// ```
/// use switchboard_domain::{Warning, WarningKind::PartDowngraded};
/// use switchboard_providers_common::tallied;
///
/// let warning = |message: &str| Warning::new(PartDowngraded, message);
/// let warnings = tallied(vec![warning("a"), warning("b"), warning("a")]);
/// assert_eq!(warnings, [warning("a (2 times)"), warning("b")]);
/// ```
pub fn tallied(warnings: Vec<Warning>) -> Vec<Warning> {
    if warnings.len() < 2 {
        return warnings;
    }
    let mut counted: Vec<(Warning, usize)> = Vec::with_capacity(warnings.len());
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for warning in warnings {
        // One message under several kinds is rare, and then there are few of them.
        let same = places.entry(warning.message.clone()).or_default();
        let known = same.iter().copied().find(|at| {
            let known = counted.get(*at);
            known.is_some_and(|(known, _)| known.kind == warning.kind)
        });
        if let Some((_, count)) = known.and_then(|at| counted.get_mut(at)) {
            *count += 1;
        } else {
            same.push(counted.len());
            counted.push((warning, 1));
        }
    }
    let told = counted.into_iter().map(|(mut warning, count)| {
        if count > 1 {
            warning.message = format!("{} ({count} times)", warning.message);
        }
        warning
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use switchboard_domain::WarningKind::{PartDowngraded, PartDropped};

    use super::*;

    #[test]
    fn one_message_of_two_kinds_is_two_warnings() {
        let (a, b) = (
            Warning::new(PartDowngraded, "x"),
            Warning::new(PartDropped, "x"),
        );
        let told = tallied(vec![a.clone(), b.clone(), b]);
        assert_eq!(told, [a, Warning::new(PartDropped, "x (2 times)")]);
        assert_eq!(tallied(Vec::new()), []);
    }
}
