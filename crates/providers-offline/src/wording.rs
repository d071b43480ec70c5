//! What the planner says in its own words: questions for values, what it can do, what it cannot.

use serde_json::Value;

use crate::{
    catalog::Tool,
    fill::Refusal,
    records::{Record, plain},
    schema::{Kind, Param},
};

/// Tools that are listed when none fits.
const LISTED: usize = 10;
/// Things that are listed when one of them must be chosen.
const OFFERED: usize = 8;

/// How a person gets a language model. The variables are those that the vendors' own SDKs read.
const REAL_MODEL: &str = "For free conversation set a real model: put a key into \
    ANTHROPIC_API_KEY or OPENAI_API_KEY, and choose one with \
    `--model provider/model`.";

/// Stands before what a file says, where nobody asked for just that.
pub(crate) const QUOTED: &str = "I am the offline planner, not a language model, and cannot work the \
    answer out. This is what stands there:\n";

/// What is said of a tool that a text speaks of, without asking for it.
pub(crate) fn spoken_of(tool: Option<&Tool>) -> String {
    let tool = tool.map(title).unwrap_or_default();
    format!(
        "I am the offline planner, not a language model. I have not used {tool}: this reads as something that is told, asked \
         about, forbidden or tied to a condition. To have it done, say it as a plain request."
    )
}

/// A tool's name for people.
pub(crate) fn title(tool: &Tool) -> String {
    let title = tool.definition.title.as_deref().unwrap_or_default().trim();
    let title = title.strip_suffix(" Tool").unwrap_or(title).trim();
    if title.is_empty() {
        capitalized(&tool.name_words.join(" "))
    } else {
        title.to_owned()
    }
}

/// With a capital first letter.
pub(crate) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

/// A list in a sentence: `a, b and c`.
pub(crate) fn listing(items: &[String], last: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., end] => format!("{} {last} {end}", most.join(", ")),
    }
}

/// The first characters of a text, and a sign if there are more.
pub(crate) fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// Asks for parameters that nothing gives.
pub(crate) fn ask_for(tool: &Tool, missing: &[&Param], again: bool) -> String {
    let still = if again { " still" } else { "" };
    match missing {
        [param] if !is_sayable(param) => format!(
            "“{}”{still} needs {}, which is more than I can put together from a sentence. Can you \
             give it as JSON: {{\"{}\": …}}?",
            title(tool),
            name(param),
            param.name
        ),
        [param] => {
            let about = about(param).map_or_else(String::new, |about| format!(" ({about})"));
            format!(
                "Which {} do you mean?{} “{}”{still} needs it{about}.",
                name(param),
                choices(param),
                title(tool)
            )
        }
        params => {
            let lines: Vec<String> = params
                .iter()
                .map(|param| {
                    let about = about(param).map_or_else(String::new, |about| format!(": {about}"));
                    let json = if is_sayable(param) {
                        String::new()
                    } else {
                        format!(" (as JSON: {{\"{}\": …}})", param.name)
                    };
                    format!("\n- {}{json}{about}{}", name(param), choices(param))
                })
                .collect();
            format!(
                "“{}”{still} needs more. What are these?{}",
                title(tool),
                lines.concat()
            )
        }
    }
}

/// Whether a value of this kind can be said in words.
fn is_sayable(param: &Param) -> bool {
    param.kind != Kind::Other || !param.choices.is_empty()
}

/// Asks for another value in place of one that is not allowed.
pub(crate) fn ask_again(tool: &Tool, param: &Param, refusal: &Refusal) -> String {
    let allowed =
        allowed(param).map_or_else(String::new, |allowed| format!(" It takes {allowed}."));
    format!(
        "“{}” does not take “{}” as its {}.{allowed} What should it be?",
        title(tool),
        shortened(&refusal.said, 80),
        name(param)
    )
}

/// Asks which of several is meant.
pub(crate) fn ask_which(param: &Param, records: &[Record]) -> String {
    let mut labels: Vec<String> = records.iter().take(OFFERED).map(Record::label).collect();
    if records.len() > OFFERED {
        labels.push(format!("one of {} more", records.len() - OFFERED));
    }
    format!(
        "Which {} do you mean: {}?",
        name(param),
        listing(&labels, "or")
    )
}

/// Nothing of this name is in the results.
pub(crate) fn none_named(wanted: &str, param: &Param) -> String {
    format!(
        "I looked for “{}” and found none in the results. Which {} do you mean?",
        shortened(wanted, 80),
        name(param)
    )
}

/// What was to give a value gave none.
pub(crate) fn nothing_found(tool: &Tool, source: &Tool, param: &Param) -> String {
    format!(
        "“{}” found nothing that gives the {} for “{}”.",
        title(source),
        name(param),
        title(tool)
    )
}

/// The tool's schema wants something that the planner cannot put together.
pub(crate) fn cannot_fill(tool: &Tool) -> String {
    format!(
        "“{}” fits, but its input is more than I can put together from a sentence. I am the offline \
         planner, not a language model. You can give the input as JSON, such as {{\"name\": \"value\"}}. \
         {REAL_MODEL}",
        title(tool)
    )
}

/// A message is longer than what is read.
pub(crate) fn too_long(words: usize, bytes: usize) -> String {
    format!(
        "Your message is too long for me, so I did nothing with it: I read at most {words} words and \
         {} kB at once. I am the offline planner, not a language model. Please say it in fewer words. \
         {REAL_MODEL}",
        bytes / 1024
    )
}

/// A tool has no place for all that was listed.
pub(crate) fn left_over(tool: &Tool, values: &[String]) -> String {
    format!(
        "“{}” fits, but it has no place for {}, so I do not call it. Please ask for less at once.",
        title(tool),
        shortened(&listing(values, "and"), 120)
    )
}

/// More was asked than is called for one question.
pub(crate) fn too_many(left: usize, alone: bool) -> String {
    let joint = if alone { "" } else { "\n" };
    format!("{joint}{left} more would be too many calls for one question; please ask for fewer.")
}

/// Tools would be needed and may not be used.
pub(crate) fn not_allowed(tool: &Tool) -> String {
    format!(
        "That needs “{}”, and I may not call tools for this answer. I am the offline planner, not a \
         language model: without tools I know nothing.",
        title(tool)
    )
}

/// Says what this is and what the tools can do. `order` is the order in which tools are told.
pub(crate) fn introduction(tools: &[Tool], order: &[usize], opening: Opening) -> String {
    let mut text = match opening {
        Opening::Thanks => "You are welcome. ",
        Opening::NothingFits | Opening::Help => "",
    }
    .to_owned();
    text.push_str(
        "I am the offline planner, not a language model: I match words with tools and know nothing \
         else.",
    );
    if tools.is_empty() {
        text.push_str(" No tools are connected, so there is nothing I can do.");
    } else {
        if opening == Opening::NothingFits {
            text.push_str(" None of the connected tools fits this.");
        }
        text.push_str(" The connected tools can do this:");
        for tool in order.iter().take(LISTED).filter_map(|&i| tools.get(i)) {
            let summary = shortened(&tool.summary(), 120);
            let said = if summary.is_empty() {
                String::new()
            } else {
                format!(": {summary}")
            };
            text.extend(["\n- ", &title(tool), &said]);
        }
        if tools.len() > LISTED {
            text.extend(["\n- … and ", &(tools.len() - LISTED).to_string(), " more"]);
        }
    }
    text.push('\n');
    text.push_str(REAL_MODEL);
    text
}

/// Why the planner introduces itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// No tool fits.
    NothingFits,
    /// The person asks what there is.
    Help,
    /// The person says thank you.
    Thanks,
}

/// A parameter's name for people.
pub(crate) fn name(param: &Param) -> String {
    if param.words.is_empty() {
        param.name.clone()
    } else {
        param.words.join(" ")
    }
}

/// The first sentence of a parameter's description.
fn about(param: &Param) -> Option<String> {
    let sentence = crate::text::first_sentence(&param.description);
    (!sentence.is_empty() && !sentence.eq_ignore_ascii_case(&name(param)))
        .then(|| shortened(&sentence, 160))
}

fn choices(param: &Param) -> String {
    let values: Vec<String> = param.choices.iter().take(12).map(plain).collect();
    if values.is_empty() {
        String::new()
    } else {
        format!(" One of {}.", listing(&values, "or"))
    }
}

/// What a schema says in numbers and lists about its values.
fn allowed(param: &Param) -> Option<String> {
    if !param.choices.is_empty() {
        let values: Vec<String> = param.choices.iter().take(12).map(plain).collect();
        return Some(listing(&values, "or"));
    }
    let bound = |key: &str| {
        param
            .schema
            .get(key)
            .filter(|bound| bound.is_number())
            .map(Value::to_string)
    };
    let (low, high) = (bound("minimum"), bound("maximum"));
    let (short, long) = (bound("minLength"), bound("maxLength"));
    match (low, high, short, long) {
        (Some(low), Some(high), ..) => Some(format!("numbers from {low} to {high}")),
        (Some(low), None, ..) => Some(format!("numbers from {low} on")),
        (None, Some(high), ..) => Some(format!("numbers up to {high}")),
        (_, _, _, Some(long)) => Some(format!("at most {long} characters")),
        (_, _, Some(short), None) => Some(format!("at least {short} characters")),
        _ => None,
    }
}
