//! Plans the demo model's next step: tool calls, a question to the user, or an answer.

use std::{collections::HashSet, sync::Arc};

use jiff::civil::Date;
use switchboard_domain::{ChatRequest, JsonObject, ToolChoice, ToolDefinition};

use crate::{
    arguments::{ToolArguments, fill_arguments, find_schema_violation, remove_json_object},
    conversation_turn::{
        ASK_PREFIX, ConversationTurn,
        name_lookup::{NameLookup, is_unnamed_lookup_tool, look_up_name},
        unused_call_ids,
    },
    question_values::QuestionValues,
    response_formatter,
    result_text::format_results,
    tool_parameters::{Parameter, read_parameters},
    tool_ranking::{rank_tools, tool_matches_question},
    word_stems::stem_words,
};

/// Maximum length of a question in bytes. The demo model declines longer questions and does not cut
/// them, because the arguments from a part of the text could be wrong.
const MAX_QUESTION_BYTES: usize = 64 * 1024;
/// Maximum number of tool names in the answer to a question that matches no tool.
const MAX_LISTED_TOOLS: usize = 10;
const ABOUT: &str = "I am a demo model, not a language model: I only match words with tools.";

/// The demo model's next step in a conversation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Plan {
    /// Tool calls that can run at the same time.
    Call(Vec<PlannedCall>),
    /// A question to the user about a missing or invalid value for a tool call.
    Ask {
        /// Text of the question, such as "I need a value for `id` to call `get_order`."
        text: String,
    },
    /// An answer that lists the results of the tool calls.
    Answer {
        /// Text of the answer.
        text: String,
    },
    /// A text instead of an answer, if the demo model cannot answer the question with a tool.
    Decline {
        /// Text that explains why no tool can answer the question.
        text: String,
    },
}

/// A tool call that the demo model requests.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCall {
    /// The id of the tool call, unique in the conversation: `call_1`, `call_2` and so on.
    pub id: String,
    /// The name of the tool, as declared in the request.
    pub name: String,
    /// The input of the tool call, which matches the tool's input schema.
    pub input: JsonObject,
}

impl Plan {
    /// Returns the planned tool calls. The slice is empty if the plan is a text for the user.
    pub fn planned_calls(&self) -> &[PlannedCall] {
        match self {
            Self::Call(calls) => calls,
            _ => &[],
        }
    }

    /// Returns the text for the user, or `None` if the plan consists of tool calls.
    pub fn user_text(&self) -> Option<&str> {
        match self {
            Self::Call(_) => None,
            Self::Ask { text } | Self::Answer { text } | Self::Decline { text } => Some(text),
        }
    }

    /// Plans the next step for a chat request. `today` is the date of the word "today" in a
    /// question.
    pub(crate) fn from_request(request: &ChatRequest, today: Date) -> Self {
        if let Some(input) = response_formatter::build_formatter_input(request, today) {
            return Self::from_call_inputs(request, response_formatter::NAME, [input]);
        }
        let turn = ConversationTurn::from_messages(&request.messages);
        if turn.question.len() > MAX_QUESTION_BYTES {
            return decline_question(&format!(
                "The question has more than {MAX_QUESTION_BYTES} bytes."
            ));
        }
        let tools = allowed_tools(request);
        if tools.is_empty() {
            return decline_question("No tool is connected.");
        }
        let is_forced = !matches!(request.tool_choice, ToolChoice::Auto);
        let words = remove_json_object(&turn.topic);
        let mut ranked = rank_tools(&words, &tools);
        if ranked.is_empty() && is_forced {
            ranked.extend(&tools);
        }
        // A tool that finds the ids of names is called for another tool, so the best other tool is
        // moved before it, unless the question contains a word of the lookup tool's name.
        let other = ranked
            .iter()
            .position(|tool| !is_unnamed_lookup_tool(tool, &words));
        if let Some(at) = other
            && tool_matches_question(ranked[at], &words)
        {
            ranked[..=at].rotate_right(1);
        }
        let first = ranked.first();
        let Some(tool) = first.filter(|tool| is_forced || tool_matches_question(tool, &words))
        else {
            return decline_question(&no_match_message(&tools));
        };
        StepPlanner {
            request,
            values: QuestionValues::from_text(&turn.question, today),
            turn: &turn,
            tools: &tools,
            others: &ranked[1..],
        }
        .plan_step(tool)
    }

    fn from_call_inputs(
        request: &ChatRequest,
        tool: &str,
        inputs: impl IntoIterator<Item = JsonObject>,
    ) -> Self {
        let calls = unused_call_ids(&request.messages)
            .zip(inputs)
            .map(|(id, input)| PlannedCall {
                id,
                name: tool.to_owned(),
                input,
            });
        Self::Call(calls.collect())
    }
}

/// Returns the tools of the request that the `tool_choice` of the request allows: all tools, the
/// tools with the listed names, or none.
fn allowed_tools(request: &ChatRequest) -> Vec<Arc<ToolDefinition>> {
    let is_allowed = |tool: &&Arc<ToolDefinition>| match &request.tool_choice {
        ToolChoice::None => false,
        ToolChoice::Only(names) => names.contains(&tool.name),
        ToolChoice::Auto | ToolChoice::Required => true,
    };
    request.tools.iter().filter(is_allowed).cloned().collect()
}

fn decline_question(reason: &str) -> Plan {
    Plan::Decline {
        text: format!("{reason} {ABOUT}"),
    }
}

fn no_match_message(tools: &[Arc<ToolDefinition>]) -> String {
    let names: Vec<String> = tools
        .iter()
        .take(MAX_LISTED_TOOLS)
        .map(|tool| format!("`{}`", tool.name))
        .collect();
    let names = names.join(", ");
    let more = match tools.len().saturating_sub(MAX_LISTED_TOOLS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("No connected tool matches the words of this question. The tools are {names}{more}.")
}

/// Data for planning the demo model's next step: the request, the values in its question, and the
/// tools that match the question.
struct StepPlanner<'a> {
    request: &'a ChatRequest,
    turn: &'a ConversationTurn<'a>,
    values: QuestionValues,
    /// The tools that the request allows.
    tools: &'a [Arc<ToolDefinition>],
    /// The other tools that match the question, in descending order of how well they match.
    others: &'a [&'a Arc<ToolDefinition>],
}

impl StepPlanner<'_> {
    fn plan_step(&self, tool: &ToolDefinition) -> Plan {
        let made = self.turn.calls_of_tool(&tool.name).len();
        let mut arguments = self.fill_tool_arguments(tool, &JsonObject::new());
        if made == 0 && !arguments.missing.is_empty() {
            let parameters = read_parameters(&tool.input_schema);
            let missing = parameters
                .iter()
                .filter(|parameter| arguments.missing.contains(&parameter.name));
            arguments = self.fill_tool_arguments(tool, &self.turn.find_values_in_results(missing));
        }
        if made == 0
            && let Some(lookup) = look_up_name(self.turn, self.tools, tool, &arguments)
        {
            match lookup {
                NameLookup::Call(name, input) => {
                    return Plan::from_call_inputs(self.request, &name, [input]);
                }
                NameLookup::Found(id) => arguments = self.fill_tool_arguments(tool, &id),
                NameLookup::Failed(name) => {
                    let calls = self.turn.calls_of_tool(&name);
                    let text = format_results(&self.turn.topic, &calls);
                    return Plan::Answer { text };
                }
            }
        }
        if made > 0 && made >= arguments.inputs.len() {
            let text = format_results(&self.turn.topic, &self.turn.calls_of_tool(&tool.name));
            return Plan::Answer { text };
        }
        if let [first, ..] = &arguments.missing[..] {
            return self
                .plan_lookup_call(tool, first)
                .unwrap_or_else(|| ask_for_parameter(tool, first));
        }
        let faults = arguments
            .inputs
            .iter()
            .find_map(|input| find_schema_violation(tool, input));
        if let Some(fault) = faults {
            return ask_user(tool, &format!("another value: {fault}"));
        }
        let inputs = arguments.inputs.into_iter().skip(made);
        let at_once = match self.request.parallel_tool_use {
            Some(false) => 1,
            _ => usize::MAX,
        };
        Plan::from_call_inputs(self.request, &tool.name, inputs.take(at_once))
    }

    fn fill_tool_arguments(&self, tool: &ToolDefinition, known: &JsonObject) -> ToolArguments {
        fill_arguments(tool, &self.turn.question, &self.values, known)
    }

    /// Plans a call of another tool that may return a value for the parameter `missing` of `tool`.
    /// This tool must be read-only. Its name must contain a word of the question that is neither in
    /// the name of `tool` nor in `missing`, such as "recent" in "the account value of the most
    /// recent customer". Returns `None` if no tool qualifies.
    fn plan_lookup_call(&self, tool: &ToolDefinition, missing: &str) -> Option<Plan> {
        let own: HashSet<String> = stem_words(&tool.name)
            .into_iter()
            .chain(stem_words(missing))
            .collect();
        let unexplained: HashSet<String> = stem_words(&self.turn.question)
            .into_iter()
            .filter(|stem| !own.contains(stem))
            .collect();
        self.others.iter().find_map(|other| {
            let is_new = self.turn.calls_of_tool(&other.name).is_empty();
            let explains = stem_words(&other.name)
                .iter()
                .any(|stem| unexplained.contains(stem));
            if other.annotations.read_only != Some(true) || !is_new || !explains {
                return None;
            }
            let arguments = self.fill_tool_arguments(other, &JsonObject::new());
            let fits = |input: &JsonObject| find_schema_violation(other, input).is_none();
            (arguments.missing.is_empty() && arguments.inputs.iter().all(fits))
                .then(|| Plan::from_call_inputs(self.request, &other.name, arguments.inputs))
        })
    }
}

fn ask_for_parameter(tool: &ToolDefinition, parameter: &str) -> Plan {
    let parameters = read_parameters(&tool.input_schema);
    let found = parameters.iter().find(|known| known.name == parameter);
    let description = found.map(Parameter::description).unwrap_or_default();
    if description.is_empty() {
        ask_user(tool, &format!("a value for `{parameter}`"))
    } else {
        let description = description.trim_end_matches('.');
        ask_user(tool, &format!("a value for `{parameter}` ({description})"))
    }
}

fn ask_user(tool: &ToolDefinition, what: &str) -> Plan {
    let name = &tool.name;
    Plan::Ask {
        text: format!("{ASK_PREFIX}{what} to call `{name}`. {ABOUT}"),
    }
}
