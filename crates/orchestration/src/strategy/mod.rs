//! Strategies: how a run gets from a question to its answer.
//!
//! [`Strategy::Loop`] lets the model call tools until it answers. [`Strategy::GatherFormat`] has
//! two phases. In the first, the model only gathers data with tools. In the second, it writes the
//! answer as texts and artifacts and calls no tools.
//!
//! | module | content |
//! |---|---|
//! | [`gather_phase`] | the first phase: its prompt, and the decision after each response |
//! | [`repeated_calls`] | detection of tool calls that the model repeats |
//! | [`formatter`] | the second phase: request, reading, repair and streaming of the answer |
//!
//! The modules do no I/O. The run calls them and stores their state.

pub mod formatter;
pub mod gather_phase;
mod more_data_marker;
mod prompt;
pub mod repeated_calls;

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use switchboard_domain::similar_names::{did_you_mean, find_nearest};

use formatter::FormatterMode;

/// Strategy of a run. In JSON, it is its name, or a map from its name to its settings.
///
/// ```
/// use switchboard_orchestration::strategy::{GatherFormat, Strategy};
///
/// let json = r#"{"gather-format": {"max_thinking_steps": 3}}"#;
/// let strategy: Strategy = serde_json::from_str(json)?;
/// assert_eq!(strategy.name(), "gather-format");
/// assert_eq!("gather-format".parse(), Ok(Strategy::GatherFormat(GatherFormat::default())));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// The model calls tools until it answers.
    #[default]
    Loop,
    /// The model first gathers data with tools and then writes the answer in a specified format.
    GatherFormat(GatherFormat),
}

const LOOP: &str = "loop";
const GATHER_FORMAT: &str = "gather-format";

/// Names of all strategies, in the spelling of configurations.
pub const NAMES: [&str; 2] = [LOOP, GATHER_FORMAT];

impl Strategy {
    /// Returns the name of the strategy in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Loop => LOOP,
            Self::GatherFormat(_) => GATHER_FORMAT,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An error about an unknown strategy name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown strategy `{name}`{}; available: {}",
    did_you_mean(find_nearest(name, NAMES)),
    NAMES.join(", ")
)]
pub struct UnknownStrategy {
    /// The unknown strategy name.
    pub name: String,
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            LOOP => Ok(Self::Loop),
            GATHER_FORMAT => Ok(Self::GatherFormat(GatherFormat::default())),
            other => Err(UnknownStrategy {
                name: other.to_owned(),
            }),
        }
    }
}

impl Serialize for Strategy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::GatherFormat(settings) if *settings != GatherFormat::default() => {
                serializer.collect_map([(GATHER_FORMAT, settings)])
            }
            plain => serializer.serialize_str(plain.name()),
        }
    }
}

impl<'de> Deserialize<'de> for Strategy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct StrategyWithSettings {
            // The recipe parser converts all keys to `snake_case`, so `gather_format` is accepted
            // too.
            #[serde(rename = "gather-format", alias = "gather_format")]
            gather_format: GatherFormat,
        }
        match Value::deserialize(deserializer)? {
            Value::String(name) => name.parse().map_err(de::Error::custom),
            value => serde_json::from_value::<StrategyWithSettings>(value)
                .map(|it| Self::GatherFormat(it.gather_format))
                .map_err(de::Error::custom),
        }
    }
}

/// Settings of [`Strategy::GatherFormat`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatherFormat {
    /// Maximum number of model responses in the gathering phase, in which the model calls tools.
    pub max_thinking_steps: u32,
    /// Maximum number of tools that the system prompt of the gathering phase describes. For further
    /// tools, the prompt states only their number. The request contains the definitions of all
    /// tools.
    pub described_tools: usize,
    /// Whether a review follows a response that has tool calls but no marker `NEED MORE DATA:`. A
    /// review is one more model call, in which the model can request further data. Without a
    /// review, such a response ends the gathering phase. Useful for models that write no text
    /// beside a tool call.
    pub review: bool,
    /// How the model is made to write the answer in the required format. If the provider refuses
    /// this mode, the run tries less strict modes. `None` selects the strictest supported mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formatter_mode: Option<FormatterMode>,
    /// JSON Schema of the final answer. `None` requires a list of texts and artifacts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

impl Default for GatherFormat {
    fn default() -> Self {
        Self {
            max_thinking_steps: 5,
            described_tools: 15,
            review: false,
            formatter_mode: None,
            schema: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strategies_serialize_in_the_form_of_the_configuration() {
        let three = GatherFormat {
            max_thinking_steps: 3,
            ..GatherFormat::default()
        };
        for (strategy, written) in [
            (Strategy::Loop, json!("loop")),
            (
                Strategy::GatherFormat(GatherFormat::default()),
                json!("gather-format"),
            ),
            (
                Strategy::GatherFormat(three),
                json!({"gather-format": {"max_thinking_steps": 3, "described_tools": 15, "review": false}}),
            ),
        ] {
            assert_eq!(serde_json::to_value(&strategy).unwrap(), written);
            assert_eq!(
                serde_json::from_value::<Strategy>(written).unwrap(),
                strategy
            );
        }
        let partial = json!({"gather-format": {"review": true}});
        let Strategy::GatherFormat(partial) = serde_json::from_value(partial).unwrap() else {
            panic!("another strategy was read")
        };
        assert!(partial.review && partial.max_thinking_steps == 5);
    }

    #[test]
    fn an_unknown_name_is_an_error_with_the_nearest_name() {
        let error = "gather-fromat".parse::<Strategy>().unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown strategy `gather-fromat` (did you mean `gather-format`?); available: loop, \
             gather-format"
        );
        for wrong in [
            json!("lop"),
            json!({"gather-format": {"steps": 3}}),
            json!({"gather-format": {}, "loop": {}}),
            json!(3),
        ] {
            assert!(
                serde_json::from_value::<Strategy>(wrong.clone()).is_err(),
                "{wrong}"
            );
        }
    }
}
