//! What a question mentions: numbers, dates, quotes, names, ids, and where they stand.

mod dates;
mod form;
mod ids;
mod names;
mod numbers;
mod quotes;

use jiff::civil::Date;
use serde_json::Number;

use self::form::Signs;
use crate::text::{Word, words};

pub(crate) use dates::whole_date;
#[cfg(test)]
pub(crate) use form::COMPILED;
pub(crate) use ids::zone_of_city;
pub(crate) use numbers::word_value;

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
    /// The bytes of the marks and line ends that end its sentences, in order.
    ends: Vec<usize>,
    /// The day on which it is read.
    pub(crate) today: Date,
}

impl<'t> Reading<'t> {
    /// Reads a text.
    pub(crate) fn new(text: &'t str, today: Date) -> Self {
        let words = words(text);
        let mut found = Findings::default();
        quotes::find(text, &mut found);
        let signs = Signs::of(text);
        ids::find(&signs, &mut found);
        dates::find(&signs, today, &mut found);
        ids::find_codes(&signs, &mut found);
        numbers::find(&signs, &words, &mut found);
        names::find(text, &words, &mut found);
        let mut reading = Self {
            text,
            words,
            mentions: found.into_grouped(text),
            ends: Vec::new(),
            today,
        };
        reading.ends = reading.sentence_ends();
        reading
    }

    fn sentence_ends(&self) -> Vec<usize> {
        let ends = |&(at, c): &(usize, char)| {
            let after = self.text.get(at + c.len_utf8()..).unwrap_or_default();
            let ends = c == '\n'
                || (matches!(c, '.' | '!' | '?' | ';')
                    && (after.is_empty() || after.starts_with(char::is_whitespace)));
            ends && !self.is_quoted(at)
        };
        let ends = self.text.char_indices().filter(ends);
        ends.map(|(at, _)| at).collect()
    }

    /// The byte of the mark or line end, outside quotations, that ends the sentence which goes on at
    /// `at`; `None` where the text ends first.
    pub(crate) fn sentence_end(&self, at: usize) -> Option<usize> {
        let count = self.ends.partition_point(|&end| end < at);
        self.ends.get(count).copied()
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

    /// The list that a mention belongs to: the mentions of its group, which stand beside each other.
    pub(crate) fn group(&self, mention: &Mention) -> &[Mention] {
        let from = self.mentions.partition_point(|m| m.group < mention.group);
        let to = self.mentions.partition_point(|m| m.group <= mention.group);
        self.mentions.get(from..to).unwrap_or_default()
    }

    /// The bounds of the list that a mention belongs to.
    pub(crate) fn group_bounds(&self, mention: &Mention) -> (usize, usize) {
        match self.group(mention) {
            [first, .., last] => (first.start, last.end),
            _ => (mention.start, mention.end),
        }
    }

    /// The mention that the byte lies in.
    pub(crate) fn mention_at(&self, at: usize) -> Option<&Mention> {
        // In order and without overlaps: only the last one that begins so early can reach so far.
        let count = self.mentions.partition_point(|m| m.start <= at);
        let last = self.mentions.get(count.checked_sub(1)?)?;
        (at < last.end).then_some(last)
    }

    /// Whether the byte lies in quotation marks.
    pub(crate) fn is_quoted(&self, at: usize) -> bool {
        self.mention_at(at)
            .is_some_and(|m| matches!(m.found, Found::Quoted(_)))
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

/// Mentions as they are found, in the order of the text; what was found first keeps its place.
#[derive(Debug, Default)]
struct Findings(Vec<Mention>);

impl Findings {
    fn add(&mut self, start: usize, end: usize, found: Found) {
        if start < end && !self.overlaps(start, end) {
            let place = self.0.partition_point(|m| m.start < start);
            let mention = Mention {
                start,
                end,
                found,
                group: 0,
            };
            self.0.insert(place, mention);
        }
    }

    fn overlaps(&self, start: usize, end: usize) -> bool {
        // None overlaps another, so the last one that begins before the end reaches furthest.
        let count = self.0.partition_point(|m| m.start < end);
        let last = count.checked_sub(1).and_then(|i| self.0.get(i));
        last.is_some_and(|m| start < m.end)
    }

    fn into_grouped(mut self, text: &str) -> Vec<Mention> {
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
