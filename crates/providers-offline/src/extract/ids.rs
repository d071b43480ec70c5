//! Addresses, paths, ids and times of day: values that show by their form what they are.

use std::sync::LazyLock;

use super::{
    Findings, Found,
    form::{Form, Signs},
};

/// Cities whose IANA zone carries another city's name, or a name that people shorten.
const CITY_ZONES: &[(&str, &str)] = &[
    ("san francisco", "America/Los_Angeles"),
    ("seattle", "America/Los_Angeles"),
    ("boston", "America/New_York"),
    ("washington", "America/New_York"),
    ("miami", "America/New_York"),
    ("houston", "America/Chicago"),
    ("dallas", "America/Chicago"),
    ("munich", "Europe/Berlin"),
    ("hamburg", "Europe/Berlin"),
    ("frankfurt", "Europe/Berlin"),
    ("milan", "Europe/Rome"),
    ("barcelona", "Europe/Madrid"),
    ("geneva", "Europe/Zurich"),
    ("beijing", "Asia/Shanghai"),
    ("mumbai", "Asia/Kolkata"),
    ("delhi", "Asia/Kolkata"),
    ("bangalore", "Asia/Kolkata"),
    ("osaka", "Asia/Tokyo"),
];

/// Zones that people name by their city.
const ZONES: &[&str] = &[
    "Africa/Cairo",
    "Africa/Johannesburg",
    "Africa/Lagos",
    "Africa/Nairobi",
    "America/Bogota",
    "America/Chicago",
    "America/Denver",
    "America/Lima",
    "America/Los_Angeles",
    "America/Mexico_City",
    "America/New_York",
    "America/Phoenix",
    "America/Sao_Paulo",
    "America/Toronto",
    "America/Vancouver",
    "Asia/Bangkok",
    "Asia/Dubai",
    "Asia/Hong_Kong",
    "Asia/Jakarta",
    "Asia/Jerusalem",
    "Asia/Karachi",
    "Asia/Kolkata",
    "Asia/Manila",
    "Asia/Seoul",
    "Asia/Shanghai",
    "Asia/Singapore",
    "Asia/Taipei",
    "Asia/Tehran",
    "Asia/Tokyo",
    "Australia/Brisbane",
    "Australia/Melbourne",
    "Australia/Perth",
    "Australia/Sydney",
    "Europe/Amsterdam",
    "Europe/Athens",
    "Europe/Berlin",
    "Europe/Brussels",
    "Europe/Bucharest",
    "Europe/Budapest",
    "Europe/Copenhagen",
    "Europe/Dublin",
    "Europe/Helsinki",
    "Europe/Istanbul",
    "Europe/Kyiv",
    "Europe/Lisbon",
    "Europe/London",
    "Europe/Madrid",
    "Europe/Moscow",
    "Europe/Oslo",
    "Europe/Paris",
    "Europe/Prague",
    "Europe/Rome",
    "Europe/Stockholm",
    "Europe/Vienna",
    "Europe/Warsaw",
    "Europe/Zurich",
    "Pacific/Auckland",
    "Pacific/Honolulu",
];

/// The IANA zone of a well-known city.
pub(crate) fn zone_of_city(city: &str) -> Option<&'static str> {
    let city = city.trim().to_lowercase();
    let listed = || {
        CITY_ZONES
            .iter()
            .find(|(name, _)| *name == city)
            .map(|(_, zone)| *zone)
    };
    let by_name = || {
        ZONES.iter().copied().find(|zone| {
            zone.rsplit('/')
                .next()
                .is_some_and(|name| name.replace('_', " ").to_lowercase() == city)
        })
    };
    listed().or_else(by_name)
}

type Make = fn(&str) -> Option<Found>;

/// Forms in the order in which they are tried: the more telling first.
pub(super) static FORMS: LazyLock<[Form<Make>; 10]> = LazyLock::new(|| {
    let slash = |signs: &Signs<'_>| signs.has_exactly(&["/"]);
    [
        Form::new(
            r#"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s<>"'`]+"#,
            |signs| signs.has_exactly(&["://"]),
            |s| Some(Found::Url(s.to_owned())),
        ),
        Form::new(
            r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
            |signs| signs.has_exactly(&["@"]),
            |s| Some(Found::Email(s.to_owned())),
        ),
        Form::new(
            r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
            |signs| signs.has_exactly(&["-"]) && signs.has_run(12, |c| c.is_ascii_hexdigit()),
            |s| Some(Found::Uuid(s.to_owned())),
        ),
        Form::new(
            r"\b\d{1,2}:\d{2}(?::\d{2})?\s?(?:[aApP]\.?[mM]\b)?|\b\d{1,2}\s?[aApP][mM]\b",
            |signs| signs.has_digit() && signs.has_any(&[":", "am", "pm"]),
            time,
        ),
        Form::new(
            r"\b(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific|Etc)/[A-Z][A-Za-z_+-]+(?:/[A-Z][A-Za-z_]+)?\b|\b(?:UTC|GMT)\b",
            |signs| signs.has_exactly(&["/", "UTC", "GMT"]),
            |s| Some(Found::Zone(s.to_owned())),
        ),
        Form::new(
            r"[A-Za-z]:\\[^\s,;]+",
            |signs| signs.has_exactly(&[":\\"]),
            path,
        ),
        Form::new(
            r"(?:~|\.{1,2})?/[\w.@+*?\-]+(?:/[\w.@+*?\-]+)*/?",
            slash,
            path,
        ),
        Form::new(r"(?:[\w.@+\-]|\*)+(?:/(?:[\w.@+\-]|\*)+)+/?", slash, path),
        Form::new(r"\*+(?:\.\w+)+", |signs| signs.has_exactly(&["*"]), path),
        Form::new(
            r"\b[\w-]{2,}(?:\.[\w-]+)*\.(?:[a-zA-Z][a-zA-Z0-9]{0,4})\b",
            |signs| signs.has_pair(|c| c == '.', |c| c.is_ascii_alphabetic()),
            path,
        ),
    ]
});

pub(super) static CODES: LazyLock<[Form<Make>; 3]> = LazyLock::new(|| {
    [
        Form::new(
            r"\b[A-Za-z]{2,}[-_][A-Za-z0-9_-]*\d[A-Za-z0-9_-]*\b",
            |signs| signs.has_digit() && signs.has_exactly(&["-", "_"]),
            code,
        ),
        Form::new(
            r"\b[A-Z]{1,}\d{2,}\b",
            |signs| signs.has_pair(|c| c.is_ascii_uppercase(), char::is_numeric),
            |s| Some(Found::Code(s.to_owned())),
        ),
        Form::new(
            r"\b[0-9a-f]{7,40}\b",
            |signs| signs.has_run(7, |c| matches!(c, '0'..='9' | 'a'..='f')),
            |s| {
                let mixed = s.contains(|c: char| c.is_ascii_digit())
                    && s.contains(|c: char| c.is_ascii_alphabetic());
                mixed.then(|| Found::Code(s.to_owned()))
            },
        ),
    ]
});

/// Finds what has the form of an address, a path, a zone or a time of day.
pub(super) fn find(signs: &Signs<'_>, findings: &mut Findings) {
    scan(signs, &*FORMS, findings);
}

/// Finds ids of letters and digits. After the dates, which may look alike.
pub(super) fn find_codes(signs: &Signs<'_>, findings: &mut Findings) {
    scan(signs, &*CODES, findings);
}

fn scan(signs: &Signs<'_>, forms: &[Form<Make>], findings: &mut Findings) {
    let text = signs.text();
    for form in forms {
        let Some(regex) = form.for_text(signs) else {
            continue;
        };
        for hit in regex.find_iter(text) {
            let value = hit
                .as_str()
                .trim_end_matches(['.', ',', ';', ':', '?', '!', ')', ' ']);
            let glued = text[..hit.start()]
                .chars()
                .next_back()
                .is_some_and(|c| c.is_alphanumeric() || c == '/' || c == '.');
            if value.is_empty() || glued {
                continue;
            }
            if let Some(found) = (form.make)(value) {
                findings.add(hit.start(), hit.start() + value.len(), found);
            }
        }
    }
}

fn path(text: &str) -> Option<Found> {
    let lower = text.to_lowercase();
    let words_with_slash = matches!(
        lower.as_str(),
        "and/or" | "either/or" | "yes/no" | "e.g" | "i.e"
    );
    // "10/12/2026" or "1/2" is no path, nor is "3.5".
    let digits_only = !text.contains(|c: char| c.is_alphabetic() || c == '*' || c == '~');
    (!words_with_slash && !digits_only).then(|| Found::Path(text.to_owned()))
}

fn code(text: &str) -> Option<Found> {
    let prefix = text
        .split(['-', '_'])
        .next()
        .unwrap_or_default()
        .to_lowercase();
    let compound = matches!(
        prefix.as_str(),
        "top" | "mid" | "pre" | "post" | "last" | "first"
    ) || super::numbers::word_value(&prefix).is_some();
    (!compound).then(|| Found::Code(text.to_owned()))
}

fn time(text: &str) -> Option<Found> {
    let lower = text.to_lowercase().replace('.', "");
    let (clock, half) = if let Some(clock) = lower.strip_suffix("am") {
        (clock, Some(0))
    } else if let Some(clock) = lower.strip_suffix("pm") {
        (clock, Some(12))
    } else {
        (lower.as_str(), None)
    };
    let mut parts = clock.trim().split(':');
    let hour: u8 = parts.next()?.parse().ok()?;
    let minute: u8 = parts.next().map_or(Some(0), |minute| minute.parse().ok())?;
    let hour = match half {
        Some(offset) if (1..=12).contains(&hour) => hour % 12 + offset,
        Some(_) => return None,
        None => hour,
    };
    (hour < 24 && minute < 60).then(|| Found::Time(format!("{hour:02}:{minute:02}")))
}
