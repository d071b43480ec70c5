//! Calendar dates, written out and relative to today.

use std::sync::LazyLock;

use jiff::{Span, civil::Date};
use regex::{Captures, Regex};

use super::{Findings, Found, numbers::word_value};

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: &[&str] = &["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

type Make = fn(&Captures<'_>, Date) -> Option<Found>;

static FORMS: LazyLock<Vec<(Regex, Make)>> = LazyLock::new(|| {
    let month = "(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\\.?";
    let day = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?";
    let year = r"(?P<year>\d{4})";
    let weekday = "mon(?:day)?|tues?(?:day)?|wed(?:nesday)?|thu(?:rs)?(?:day)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?";
    let count =
        "(?P<count>\\d{1,4}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)";
    let unit = "(?P<unit>day|week|month|year)s?";
    let forms: Vec<(String, Make)> = vec![
        (
            r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:z|[+-]\d{2}:?\d{2})?"
                .to_owned(),
            date_time,
        ),
        (
            r"(?P<year>\d{4})[-/.](?P<month_number>\d{1,2})[-/.](?P<day>\d{1,2})".to_owned(),
            civil,
        ),
        (
            r"(?P<day>\d{1,2})\.(?P<month_number>\d{1,2})\.(?P<year>\d{4})".to_owned(),
            civil,
        ),
        (
            r"(?P<one>\d{1,2})/(?P<two>\d{1,2})/(?P<year>\d{4})".to_owned(),
            slashed,
        ),
        (
            format!(r"{month}\s+(?:the\s+)?{day}(?:\s*,)?\s+(?:of\s+)?{year}"),
            civil,
        ),
        (
            format!(r"{day}\s+(?:of\s+)?{month}(?:\s*,)?\s+{year}"),
            civil,
        ),
        (format!(r"{month}\s+(?:the\s+)?{day}"), civil),
        (format!(r"{day}\s+(?:of\s+)?{month}"), civil),
        (format!(r"{month}\s+(?:of\s+)?{year}"), civil),
        // Without a word before it, "may" and "march" are no months.
        (
            format!(r"(?:since|in|from|after|before|until)\s+{month}"),
            civil,
        ),
        (r"today|yesterday|tomorrow".to_owned(), named_day),
        (format!(r"{count}\s+{unit}\s+ago"), ago),
        (format!(r"(?:last|past|previous)\s+{count}\s+{unit}"), ago),
        (
            r"(?P<which>last|past|previous|this)\s+(?P<unit>week|month|year)".to_owned(),
            period,
        ),
        (
            format!(r"(?:last\s+|on\s+|since\s+|this\s+)(?P<weekday>{weekday})"),
            weekday_before,
        ),
    ];
    forms
        .into_iter()
        .filter_map(|(pattern, make)| {
            Some((Regex::new(&format!(r"(?i)\b(?:{pattern})\b")).ok()?, make))
        })
        .collect()
});

/// Finds dates.
pub(super) fn find(text: &str, today: Date, findings: &mut Findings) {
    for (regex, make) in FORMS.iter() {
        for captures in regex.captures_iter(text) {
            let Some(hit) = captures.get(0) else { continue };
            if let Some(found) = make(&captures, today) {
                findings.add(hit.start(), hit.end(), found);
            }
        }
    }
}

/// The date if the text is one date and nothing else.
pub(crate) fn whole_date(text: &str) -> Option<Date> {
    text.parse().ok()
}

fn number<T: std::str::FromStr>(captures: &Captures<'_>, group: &str) -> Option<T> {
    captures.name(group)?.as_str().parse().ok()
}

fn date_time(captures: &Captures<'_>, _today: Date) -> Option<Found> {
    let text = captures.get(0)?.as_str();
    whole_date(text.get(..10)?)?;
    Some(Found::DateTime(text.replacen(' ', "T", 1).to_uppercase()))
}

/// A day of a month. Without a year, this year, or the year before if that would be in the future
/// after a word such as "since", which the caller cannot know: people ask tools about the past.
fn civil(captures: &Captures<'_>, today: Date) -> Option<Found> {
    let month = number::<i8>(captures, "month_number").or_else(|| {
        let name = captures.name("month")?.as_str().to_lowercase();
        let index = MONTHS.iter().position(|month| name.starts_with(month))?;
        i8::try_from(index + 1).ok()
    })?;
    let day = if captures.name("day").is_some() {
        number(captures, "day")?
    } else {
        1
    };
    let date = if let Some(year) = number::<i16>(captures, "year") {
        Date::new(year, month, day).ok()?
    } else {
        let this_year = Date::new(today.year(), month, day).ok()?;
        if this_year > today {
            Date::new(today.year() - 1, month, day).ok()?
        } else {
            this_year
        }
    };
    Some(Found::Date(date))
}

/// `13/10/2026` can be read one way only; `10/11/2026` cannot, and is left alone.
fn slashed(captures: &Captures<'_>, _today: Date) -> Option<Found> {
    let (one, two): (i8, i8) = (number(captures, "one")?, number(captures, "two")?);
    let (day, month) = match (one > 12, two > 12) {
        (true, false) => (one, two),
        (false, true) => (two, one),
        _ if one == two => (one, two),
        _ => return None,
    };
    Date::new(number(captures, "year")?, month, day)
        .ok()
        .map(Found::Date)
}

fn named_day(captures: &Captures<'_>, today: Date) -> Option<Found> {
    let date = match captures.get(0)?.as_str().to_lowercase().as_str() {
        "yesterday" => today.yesterday().ok()?,
        "tomorrow" => today.tomorrow().ok()?,
        _ => today,
    };
    Some(Found::Date(date))
}

fn back(today: Date, count: i64, unit: &str) -> Option<Date> {
    let span = Span::new();
    let span = match unit {
        "day" => span.try_days(count),
        "week" => span.try_weeks(count),
        "month" => span.try_months(count),
        _ => span.try_years(count),
    };
    today.checked_sub(span.ok()?).ok()
}

fn ago(captures: &Captures<'_>, today: Date) -> Option<Found> {
    let count = captures.name("count")?.as_str().to_lowercase();
    let count = match count.as_str() {
        "a" | "an" => 1,
        word => word_value(word).or_else(|| word.parse().ok())?,
    };
    let unit = captures.name("unit")?.as_str().to_lowercase();
    back(today, count, &unit).map(Found::Date)
}

/// "this month" is its first day; "last month" is a month ago.
fn period(captures: &Captures<'_>, today: Date) -> Option<Found> {
    let unit = captures.name("unit")?.as_str().to_lowercase();
    let date = if captures
        .name("which")?
        .as_str()
        .eq_ignore_ascii_case("this")
    {
        match unit.as_str() {
            "week" => {
                let days = i64::from(today.weekday().to_monday_zero_offset());
                back(today, days, "day")?
            }
            "month" => today.first_of_month(),
            _ => today.first_of_year(),
        }
    } else {
        back(today, 1, &unit)?
    };
    Some(Found::Date(date))
}

/// The last such day before today.
fn weekday_before(captures: &Captures<'_>, today: Date) -> Option<Found> {
    let name = captures.name("weekday")?.as_str().to_lowercase();
    let wanted = WEEKDAYS.iter().position(|day| name.starts_with(day))?;
    let now = usize::try_from(today.weekday().to_monday_zero_offset()).ok()?;
    let days = (now + 7 - wanted - 1) % 7 + 1;
    back(today, i64::try_from(days).ok()?, "day").map(Found::Date)
}
