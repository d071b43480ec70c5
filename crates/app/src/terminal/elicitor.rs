//! Asks the person at the terminal for information that an MCP server requests.

use std::{fmt::Write as _, sync::Arc};

use async_trait::async_trait;
use serde_json::{Map, Value};
use switchboard_domain::{
    Elicitation, ElicitationAnswer, ElicitationForm, Elicitor, json_schema::SchemaValidator,
};

use super::{
    DOUBTFUL, FAINT, STRONG, Screen, print_line, prompt::LineReader, strip_control_characters,
    to_one_line,
};

/// Elicitor that asks on standard error and reads from standard input. Both must be terminals.
pub(crate) struct TerminalElicitor {
    screen: Screen,
    lines: Arc<dyn LineReader>,
}

impl TerminalElicitor {
    /// Creates an elicitor that hides the spinner of `screen` while it asks a question.
    pub(crate) fn new(screen: Screen, lines: Arc<dyn LineReader>) -> Self {
        Self { screen, lines }
    }
}

#[async_trait]
impl Elicitor for TerminalElicitor {
    async fn elicit(&self, elicitation: &Elicitation) -> ElicitationAnswer {
        if !self.lines.is_interactive() {
            return ElicitationAnswer::Cancel;
        }
        let _turn = self.screen.wait_for_question_turn().await;
        self.screen.remove_spinner();
        print_line(format_elicitation_heading(elicitation));
        let content = match &elicitation.form {
            ElicitationForm::Fields { schema } => ask_for_fields(schema, &*self.lines).await,
            ElicitationForm::Url { url, .. } => ask_to_open_url(url, &*self.lines).await,
            // A kind of elicitation that the terminal cannot show is cancelled.
            _ => return ElicitationAnswer::Cancel,
        };
        content.map_or_else(|end| end, |content| ElicitationAnswer::Accept { content })
    }
}

/// Formats the heading of an elicitation: the name of the server, and the server's message.
fn format_elicitation_heading(elicitation: &Elicitation) -> String {
    format!(
        "{DOUBTFUL}?{DOUBTFUL:#} {STRONG}{}{STRONG:#} asks: {}",
        to_one_line(&elicitation.server, 64),
        strip_control_characters(&elicitation.message)
    )
}

const WAYS_OUT: &str = "  (:decline to refuse, :cancel to skip)";

/// Repeats a question until `read` accepts the answer, and returns the value from `read`. If the
/// user declines or cancels, returns this decision as the error.
async fn ask_until_valid<T>(
    lines: &dyn LineReader,
    question: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<T, ElicitationAnswer> {
    loop {
        let Ok(line) = lines.prompt_for_line(question.to_owned()).await else {
            return Err(ElicitationAnswer::Cancel);
        };
        match line.trim() {
            ":decline" => return Err(ElicitationAnswer::Decline),
            ":cancel" => return Err(ElicitationAnswer::Cancel),
            text => match read(text) {
                Ok(value) => return Ok(value),
                Err(wrong) => print_line(format_args!("  {DOUBTFUL}!{DOUBTFUL:#} {wrong}")),
            },
        }
    }
}

async fn ask_to_open_url(
    url: &str,
    lines: &dyn LineReader,
) -> Result<Map<String, Value>, ElicitationAnswer> {
    print_line(format_args!(
        "  it asks you to open {STRONG}{}{STRONG:#}\n  {FAINT}{WAYS_OUT}{FAINT:#}",
        strip_control_characters(url)
    ));
    let question = "  Will you open this page? [y]es, [n]o";
    if ask_until_valid(lines, question, parse_yes_or_no).await? {
        Ok(Map::new())
    } else {
        Err(ElicitationAnswer::Decline)
    }
}

async fn ask_for_fields(
    schema: &Value,
    lines: &dyn LineReader,
) -> Result<Map<String, Value>, ElicitationAnswer> {
    print_line(format_args!("{FAINT}{WAYS_OUT}{FAINT:#}"));
    let mut content = Map::new();
    for field in FormField::fields_from_schema(schema) {
        if let Some(value) = ask_until_valid(lines, &field.format_question(), |text| {
            field.parse_answer(text)
        })
        .await?
        {
            content.insert(field.name.to_owned(), value);
        }
    }
    Ok(content)
}

fn parse_yes_or_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "y" | "yes" | "true" => Ok(true),
        "n" | "no" | "false" => Ok(false),
        _ => Err("answer yes or no".to_owned()),
    }
}

/// A field of the form that an MCP server requests, with its JSON Schema.
struct FormField<'s> {
    name: &'s str,
    schema: &'s Value,
    required: bool,
}

/// One choice of a form field: the value in the schema, and the title that the user sees.
type Choice<'s> = (&'s str, &'s str);

impl<'s> FormField<'s> {
    fn fields_from_schema(schema: &'s Value) -> Vec<Self> {
        let required = |name: &str| {
            let names = schema["required"].as_array();
            names.is_some_and(|names| names.iter().any(|it| it == name))
        };
        let properties = schema["properties"].as_object().into_iter().flatten();
        properties
            .map(|(name, schema)| Self {
                name,
                schema,
                required: required(name),
            })
            .collect()
    }

    fn json_type(&self) -> &str {
        self.schema["type"].as_str().unwrap_or("string")
    }

    /// Returns the choices of a field. They are in its schema: in `enum` with titles in
    /// `enumNames`, or in `oneOf` or `anyOf` as constants with titles. For a list, they are in the
    /// schema of its items.
    fn list_choices(&self) -> Vec<Choice<'s>> {
        let options = self.schema.get("items").unwrap_or(self.schema);
        let titled = options["oneOf"].as_array().or(options["anyOf"].as_array());
        if let Some(titled) = titled {
            let choices = titled.iter().filter_map(|it| {
                let value = it["const"].as_str()?;
                Some((value, it["title"].as_str().unwrap_or(value)))
            });
            return choices.collect();
        }
        let values = options["enum"].as_array().into_iter().flatten();
        let choices = values.enumerate().filter_map(|(at, value)| {
            let value = value.as_str()?;
            Some((value, options["enumNames"][at].as_str().unwrap_or(value)))
        });
        choices.collect()
    }

    fn format_question(&self) -> String {
        let title = self.schema["title"].as_str().unwrap_or(self.name);
        let mut text = format!("  {STRONG}{}{STRONG:#}", to_one_line(title, 80));
        if let Some(description) = self.schema["description"].as_str() {
            let _ = write!(text, " – {}", to_one_line(description, 300));
        }
        let choices = self.list_choices();
        for (number, (_, shown)) in (1..).zip(&choices) {
            let _ = write!(text, "\n    {number}) {}", to_one_line(shown, 120));
        }
        let format = self.schema["format"].as_str();
        let hint = match (choices.is_empty(), self.json_type()) {
            (false, "array") => "numbers or names, separated by commas",
            (false, _) => "a number or a name",
            (true, "boolean") => "yes or no",
            (true, kind) => format.unwrap_or(kind),
        };
        let default = match self.schema.get("default") {
            Some(Value::String(text)) => format!("; default: {}", to_one_line(text, 80)),
            Some(default) => format!("; default: {}", to_one_line(&default.to_string(), 80)),
            None if !self.required => "; optional".to_owned(),
            None => String::new(),
        };
        let hint = to_one_line(hint, 40);
        format!("{text} {FAINT}({hint}{default}){FAINT:#}:")
    }

    /// Parses the user's answer for this field. For an empty answer, returns the default value of
    /// the field. Without a default value, returns `None` for an optional field and an error for a
    /// required one.
    fn parse_answer(&self, text: &str) -> Result<Option<Value>, String> {
        if text.is_empty() {
            return match self.schema.get("default") {
                Some(default) => Ok(Some(default.clone())),
                None if self.required => Err("an answer is required".to_owned()),
                None => Ok(None),
            };
        }
        let choices = self.list_choices();
        if !choices.is_empty() {
            if self.json_type() == "array" {
                let chosen = text.split(',').map(|one| find_choice(&choices, one.trim()));
                return Ok(Some(chosen.collect::<Result<_, _>>()?));
            }
            return find_choice(&choices, text).map(Some);
        }
        self.parse_value(text).map(Some)
    }

    fn parse_value(&self, text: &str) -> Result<Value, String> {
        let value: Value = match self.json_type() {
            "boolean" => parse_yes_or_no(text)?.into(),
            "integer" => {
                let number = text.parse::<i64>();
                number.map_err(|_| "enter a whole number")?.into()
            }
            "number" => {
                let number = text.parse().ok().and_then(serde_json::Number::from_f64);
                Value::Number(number.ok_or("enter a number")?)
            }
            _ => text.into(),
        };
        // If the schema does not compile, the MCP client checks the value later.
        let Ok(validator) = SchemaValidator::compile(self.schema) else {
            return Ok(value);
        };
        let errors = validator.list_errors(&value).unwrap_or_default();
        match errors.first() {
            Some(error) => Err(to_one_line(&error.to_string(), 200)),
            None => Ok(value),
        }
    }
}

/// Returns the value of the choice that `text` selects: by value or title in any case, or by
/// number, starting at 1. Returns an error if `text` selects no choice.
fn find_choice(choices: &[Choice<'_>], text: &str) -> Result<Value, String> {
    let by_word = choices.iter().find(|(value, shown)| {
        value.eq_ignore_ascii_case(text) || shown.eq_ignore_ascii_case(text)
    });
    let by_number = || {
        let number: usize = text.parse().ok()?;
        choices.get(number.checked_sub(1)?)
    };
    match by_word.or_else(by_number) {
        Some((value, _)) => Ok((*value).into()),
        None => Err(format!(
            "`{}` is not one of the choices",
            to_one_line(text, 40)
        )),
    }
}

#[cfg(test)]
#[path = "elicitor_tests.rs"]
mod tests;
