//! Patterns that are compiled when a text comes in which they could be found.
//!
//! To compile one costs as much as to read a thousand questions, and most questions hold none of what most patterns are for. So
//! each pattern has a sign without which it cannot be found, which is cheap to look for.

use std::{borrow::Cow, sync::OnceLock};

use regex::Regex;

#[cfg(test)]
thread_local! {
    /// How many patterns this thread compiled, for tests that say when that is done.
    pub(crate) static COMPILED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// What can be seen of a text at a glance.
pub(super) struct Signs<'t> {
    text: &'t str,
    /// The same in small letters, with those that a pattern takes for others in capitals and small letters.
    folded: String,
    has_digit: bool,
}

impl<'t> Signs<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        // The one letter whose capital is another letter's, too, and that is not small then.
        let folded = text.to_lowercase().replace('ſ', "s");
        Self {
            text,
            folded,
            has_digit: text.contains(char::is_numeric),
        }
    }

    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    /// Whether there is a digit, of any script.
    pub(super) fn has_digit(&self) -> bool {
        self.has_digit
    }

    /// Whether one of these is in it, in capital or small letters; they are given in small ones.
    pub(super) fn has_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.folded.contains(word))
    }

    /// Whether one of these is in it just so.
    pub(super) fn has_exactly(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.text.contains(word))
    }

    /// Whether so many such characters stand side by side.
    pub(super) fn has_run(&self, length: usize, is_one: impl Fn(char) -> bool) -> bool {
        let mut run = 0;
        self.text.chars().any(|c| {
            run = if is_one(c) { run + 1 } else { 0 };
            run >= length
        })
    }

    /// Whether a character of one sort stands before one of another.
    pub(super) fn has_pair(
        &self,
        one: impl Fn(char) -> bool,
        other: impl Fn(char) -> bool,
    ) -> bool {
        let next = self.text.chars().skip(1);
        self.text.chars().zip(next).any(|(a, b)| one(a) && other(b))
    }
}

/// The sign of all that needs a digit.
pub(super) fn digit(signs: &Signs<'_>) -> bool {
    signs.has_digit()
}

/// A pattern, its sign, and what is made of what it finds.
pub(super) struct Form<M> {
    /// Whether it could be found: true of every text in which it is.
    pub(super) could_be_in: fn(&Signs<'_>) -> bool,
    pattern: Cow<'static, str>,
    pub(super) make: M,
    regex: OnceLock<Option<Regex>>,
}

impl<M> Form<M> {
    pub(super) fn new(
        pattern: impl Into<Cow<'static, str>>,
        could_be_in: fn(&Signs<'_>) -> bool,
        make: M,
    ) -> Self {
        Self {
            could_be_in,
            pattern: pattern.into(),
            make,
            regex: OnceLock::new(),
        }
    }

    /// The pattern, if it could be found in a text.
    pub(super) fn for_text(&self, signs: &Signs<'_>) -> Option<&Regex> {
        if (self.could_be_in)(signs) {
            self.compiled()
        } else {
            None
        }
    }

    pub(super) fn compiled(&self) -> Option<&Regex> {
        let compile = || {
            #[cfg(test)]
            COMPILED.set(COMPILED.get() + 1);
            Regex::new(&self.pattern).ok()
        };
        self.regex.get_or_init(compile).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{dates, ids, numbers},
        *,
    };

    /// Texts that are full of what patterns look for.
    fn any_text() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            " ",
            " ",
            "-",
            "-",
            "_",
            "/",
            "\\",
            ":",
            ":",
            "//",
            "@",
            ".",
            ".",
            ",",
            "*",
            "~",
            "#",
            "#",
            "$",
            "a",
            "A",
            "T",
            "x",
            "s",
            "ſ",
            "K",
            "1",
            "4",
            "42",
            "2026",
            "09",
            "٣",
            "²",
            "10:30",
            "am",
            "PM",
            "c0ffee",
            "deadbee",
            "UTC",
            "gmt",
            "Europe",
            "Berlin",
            "https",
            "example",
            "may",
            "MARCH",
            "sept",
            "ſept",
            "Auguſt",
            "dec",
            "today",
            "yeſterday",
            "tomorrow",
            "ago",
            "two",
            "an",
            "weeks",
            "day",
            "laſt",
            "past",
            "this",
            "since",
            "on",
            "Monday",
            "ſun",
            "the",
            "of",
            "st",
            "jpg",
            "é",
            "\n",
        ]);
        prop_oneof![
            4 => prop::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat()),
            1 => ".{0,20}",
        ]
    }

    fn lawful<M>(form: &Form<M>, signs: &Signs<'_>) -> Result<(), TestCaseError> {
        let regex = form.compiled();
        prop_assert!(regex.is_some(), "{}", form.pattern);
        let is_in = regex.is_some_and(|regex| regex.is_match(signs.text()));
        prop_assert!(
            !is_in || (form.could_be_in)(signs),
            "{} in {:?}",
            form.pattern,
            signs.text()
        );
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn no_pattern_is_passed_over_that_is_in_a_text(text in any_text()) {
            let signs = Signs::of(&text);
            for form in dates::FORMS.iter() {
                lawful(form, &signs)?;
            }
            for form in ids::FORMS.iter().chain(ids::CODES.iter()) {
                lawful(form, &signs)?;
            }
            lawful(&numbers::DIGITS, &signs)?;
        }
    }

    #[test]
    fn each_pattern_is_found_where_it_is() {
        for text in [
            "2026-09-15T10:30Z",
            "2026.9.15",
            "15.9.2026",
            "13/10/2026",
            "September the 15th, of 2026",
            "15th of Sept. 2026",
            "may 3",
            "3 may",
            "may 2026",
            "since MARCH",
            "tomorrow",
            "an hour and two weeks ago",
            "the past 3 days",
            "laſt month",
            "on Monday",
            "https://a.b/c",
            "a@b.c",
            "123e4567-e89b-12d3-a456-426614174000",
            "7pm",
            "Etc/UTC",
            r"c:\x",
            "~/notes",
            "a/b",
            "*.rs",
            "lib.rs",
            "TICKET-1001",
            "AB12",
            "deadbee1",
        ] {
            let signs = Signs::of(text);
            let dates = dates::FORMS
                .iter()
                .filter(|it| it.for_text(&signs).is_some_and(|it| it.is_match(text)));
            let ids = ids::FORMS.iter().chain(ids::CODES.iter());
            let ids = ids.filter(|it| it.for_text(&signs).is_some_and(|it| it.is_match(text)));
            assert!(dates.count() + ids.count() > 0, "{text}");
        }
        let plain = Signs::of("Who is the customer with the best account?");
        assert!(dates::FORMS.iter().all(|it| it.for_text(&plain).is_none()));
    }
}
