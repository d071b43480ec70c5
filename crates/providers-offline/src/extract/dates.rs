//! Calendar dates, written out and relative to today.

use std::sync::LazyLock;

use jiff::{Span, civil::Date};
use regex::Captures;

use super::{
    Findings, Found,
    form::{Form, Signs},
    numbers::word_value,
};

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: &[&str] = &["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

type Make = fn(&Captures<'_>, Date) -> Option<Found>;

/// Whether a month could be named.
fn month(signs: &Signs<'_>) -> bool {
    signs.has_any(MONTHS)
}

fn month_and_digit(signs: &Signs<'_>) -> bool {
    signs.has_digit() && month(signs)
}

/// Whether there could be a year in digits with others beside it.
fn year_among<const N: usize>(signs: &Signs<'_>, marks: [&str; N]) -> bool {
    signs.has_exactly(&marks) && signs.has_run(4, char::is_numeric)
}

pub(super) static FORMS: LazyLock<Vec<Form<Make>>> = LazyLock::new(|| {
    let name = "(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\\.?";
    let day = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?";
    let year = r"(?P<year>\d{4})";
    let weekday = "mon(?:day)?|tues?(?:day)?|wed(?:nesday)?|thu(?:rs)?(?:day)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?";
    let count =
        "(?P<count>\\d{1,4}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)";
    let unit = "(?P<unit>day|week|month|year)s?";
    let form = |pattern: &str, could_be_in: fn(&Signs<'_>) -> bool, make: Make| {
        Form::new(format!(r"(?i)\b(?:{pattern})\b"), could_be_in, make)
    };
    vec![
        form(
            r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:z|[+-]\d{2}:?\d{2})?",
            |signs| year_among(signs, ["-"]),
            date_time,
        ),
        form(
            r"(?P<year>\d{4})[-/.](?P<month_number>\d{1,2})[-/.](?P<day>\d{1,2})",
            |signs| year_among(signs, ["-", "/", "."]),
            civil,
        ),
        form(
            r"(?P<day>\d{1,2})\.(?P<month_number>\d{1,2})\.(?P<year>\d{4})",
            |signs| year_among(signs, ["."]),
            civil,
        ),
        form(
            r"(?P<one>\d{1,2})/(?P<two>\d{1,2})/(?P<year>\d{4})",
            |signs| year_among(signs, ["/"]),
            slashed,
        ),
        form(
            &format!(r"{name}\s+(?:the\s+)?{day}(?:\s*,)?\s+(?:of\s+)?{year}"),
            month_and_digit,
            civil,
        ),
        form(
            &format!(r"{day}\s+(?:of\s+)?{name}(?:\s*,)?\s+{year}"),
            month_and_digit,
            civil,
        ),
        form(
            &format!(r"{name}\s+(?:the\s+)?{day}"),
            month_and_digit,
            civil,
        ),
        form(
            &format!(r"{day}\s+(?:of\s+)?{name}"),
            month_and_digit,
            civil,
        ),
        form(
            &format!(r"{name}\s+(?:of\s+)?{year}"),
            month_and_digit,
            civil,
        ),
        // Without a word before it, "may" and "march" are no months.
        form(
            &format!(r"(?:since|in|from|after|before|until)\s+{name}"),
            month,
            civil,
        ),
        form(
            "today|yesterday|tomorrow",
            |signs| signs.has_any(&["today", "yesterday", "tomorrow"]),
            named_day,
        ),
        form(
            &format!(r"{count}\s+{unit}\s+ago"),
            |signs| signs.has_any(&["ago"]),
            ago,
        ),
        form(
            &format!(r"(?:last|past|previous)\s+{count}\s+{unit}"),
            |signs| signs.has_any(&["last", "past", "previous"]),
            ago,
        ),
        form(
            r"(?P<which>last|past|previous|this)\s+(?P<unit>week|month|year)",
            |signs| signs.has_any(&["last", "past", "previous", "this"]),
            period,
        ),
        form(
            &format!(r"(?:last\s+|on\s+|since\s+|this\s+)(?P<weekday>{weekday})"),
            |signs| signs.has_any(WEEKDAYS) && signs.has_any(&["last", "on", "since", "this"]),
            weekday_before,
        ),
    ]
});

/// Finds dates.
pub(super) fn find(signs: &Signs<'_>, today: Date, findings: &mut Findings) {
    for form in FORMS.iter() {
        let Some(regex) = form.for_text(signs) else {
            continue;
        };
        for captures in regex.captures_iter(signs.text()) {
            let Some(hit) = captures.get(0) else { continue };
            if let Some(found) = (form.make)(&captures, today) {
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
