//! What a question mentions: numbers, dates, quotes, names, ids, and where they stand.

mod dates;
mod ids;
mod names;
mod numbers;
mod quotes;

use jiff::civil::Date;
use serde_json::Number;

use crate::text::{Word, words};

pub(crate) use dates::whole_date;
pub(crate) use ids::zone_of_city;

/// Something in a question that could be an argument.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mention {
    /// The first byte.
    pub(crate) start: usize,
    /// The byte after the last.
    pub(crate) end: usize,
    /// What it is.
    pub(crate) found: Found,
    /// Mentions joined by commas and "and" have the same group: `7, 8 and 9`.
    pub(crate) group: usize,
}

/// What a mention is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    /// In quotation marks; the text between them.
    Quoted(String),
    /// An address with a scheme.
    Url(String),
    /// An e-mail address.
    Email(String),
    /// A UUID.
    Uuid(String),
    /// A file, a folder or a glob.
    Path(String),
    /// An IANA time zone.
    Zone(String),
    /// A letter-and-digit id such as `TICKET-1001`, or a commit hash.
    Code(String),
    /// A time of day, `HH:MM`.
    Time(String),
    /// A calendar date.
    Date(Date),
    /// A date with a time, as written.
    DateTime(String),
    /// A number.
    Number(Amount),
    /// Capitalised words.
    Name(String),
}

/// A number as a JSON number, and whole if it is whole.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Amount {
    /// The number.
    pub(crate) number: Number,
    /// The number if it has no fraction.
    pub(crate) whole: Option<i64>,
    /// It was written with `#`, which makes it an id.
    pub(crate) hash: bool,
}

/// A text with its words and mentions.
#[derive(Debug, Clone)]
pub(crate) struct Reading<'t> {
    /// The text.
    pub(crate) text: &'t str,
    /// Its words in order.
    pub(crate) words: Vec<Word>,
    /// Its mentions in order, none overlapping another.
    pub(crate) mentions: Vec<Mention>,
    /// The day on which it is read.
    pub(crate) today: Date,
}

impl<'t> Reading<'t> {
    /// Reads a text.
    pub(crate) fn new(text: &'t str, today: Date) -> Self {
        let words = words(text);
        let mut found = Findings::default();
        quotes::find(text, &mut found);
        ids::find(text, &mut found);
        dates::find(text, today, &mut found);
        ids::find_codes(text, &mut found);
        numbers::find(text, &words, &mut found);
        names::find(text, &words, &mut found);
        Self {
            text,
            words,
            mentions: found.into_grouped(text),
            today,
        }
    }

    /// The words that end at or before `at`, nearest first.
    pub(crate) fn words_before(&self, at: usize) -> impl Iterator<Item = &Word> {
        let count = self.words.partition_point(|word| word.end <= at);
        self.words.iter().take(count).rev()
    }

    /// The words that begin at or after `at`, nearest first.
    pub(crate) fn words_after(&self, at: usize) -> impl Iterator<Item = &Word> {
        let skip = self.words.partition_point(|word| word.start < at);
        self.words.iter().skip(skip)
    }

    /// The bounds of the list that a mention belongs to.
    pub(crate) fn group_bounds(&self, mention: &Mention) -> (usize, usize) {
        let members = self.mentions.iter().filter(|m| m.group == mention.group);
        members.fold((mention.start, mention.end), |(start, end), m| {
            (start.min(m.start), end.max(m.end))
        })
    }

    /// Whether the byte lies in quotation marks.
    pub(crate) fn is_quoted(&self, at: usize) -> bool {
        self.mentions
            .iter()
            .any(|m| matches!(m.found, Found::Quoted(_)) && m.start <= at && at < m.end)
    }

    /// The text between two bytes, empty where that is no slice.
    pub(crate) fn slice(&self, start: usize, end: usize) -> &'t str {
        self.text.get(start..end).unwrap_or_default()
    }
}

impl Found {
    /// The text of it, if text is what it is.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Quoted(text)
            | Self::Url(text)
            | Self::Email(text)
            | Self::Uuid(text)
            | Self::Path(text)
            | Self::Zone(text)
            | Self::Code(text)
            | Self::Time(text)
            | Self::DateTime(text)
            | Self::Name(text) => Some(text),
            Self::Date(_) | Self::Number(_) => None,
        }
    }
}

/// Mentions as they are found; what was found first keeps its place.
#[derive(Debug, Default)]
struct Findings(Vec<Mention>);

impl Findings {
    fn add(&mut self, start: usize, end: usize, found: Found) {
        if !self.overlaps(start, end) {
            self.0.push(Mention {
                start,
                end,
                found,
                group: 0,
            });
        }
    }

    fn overlaps(&self, start: usize, end: usize) -> bool {
        self.0.iter().any(|m| m.start < end && start < m.end)
    }

    fn into_grouped(mut self, text: &str) -> Vec<Mention> {
        self.0.sort_by_key(|mention| mention.start);
        let mut group = 0;
        for i in 0..self.0.len() {
            let joined = i > 0
                && std::mem::discriminant(&self.0[i - 1].found)
                    == std::mem::discriminant(&self.0[i].found)
                && text
                    .get(self.0[i - 1].end..self.0[i].start)
                    .is_some_and(is_list_joint);
            group += usize::from(!joined);
            self.0[i].group = group;
        }
        self.0
    }
}

/// Whether the text between two mentions makes a list of them.
fn is_list_joint(between: &str) -> bool {
    let between = between.trim().to_lowercase();
    let between = between.trim_start_matches(',').trim();
    matches!(
        between,
        "" | "and" | "&" | "or" | "as well as" | "plus" | "+"
    )
}

#[cfg(test)]
#[path = "extract_tests.rs"]
mod tests;
