//! Arguments of one tool from one text, by the tool's schema.
//!
//! What is certain goes first: a JSON object in the text, then `name: value`, then the values a
//! parameter is limited to, then numbers, dates, ids and the like by type and nearness, then free
//! text. Nothing is made up: what is not said stays out, and every value is checked against the
//! parameter's schema.

mod choice;
mod convert;
mod count;
mod keyed;
mod nearness;
mod tail;
mod typed;

use std::collections::HashSet;

use serde_json::{Map, Value};
use switchboard_domain::JsonObject;

use crate::{
    catalog::Tool,
    extract::{Found, Mention, Reading},
    schema::{Kind, Param},
    validate::fits,
};

/// What a text gives for a tool's parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Filling {
    /// The input, as far as it is known, in the order of the schema.
    pub(crate) input: JsonObject,
    /// Required parameters that the text says nothing about.
    pub(crate) missing: Vec<String>,
    /// Values that were given and are not allowed.
    pub(crate) refused: Vec<Refusal>,
    /// How sure the values are, summed.
    pub(crate) evidence: f64,
    /// Further values for one parameter: `customers 7 and 42`.
    pub(crate) further: Option<(String, Vec<Value>)>,
    /// What of the text went into the input.
    pub(crate) spans: Vec<(usize, usize)>,
    /// Numbers, quotes, paths and the like that found no place.
    pub(crate) unused: usize,
    /// Members of a list that found no place though others of the list did: `4` of `19, 23 and 4`.
    pub(crate) left_over: Vec<String>,
}

/// A value that was given and is not allowed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    /// The parameter.
    pub(crate) param: String,
    /// What was said.
    pub(crate) said: String,
}

impl Filling {
    /// Whether the tool can be called with it.
    pub(crate) fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.refused.is_empty()
    }

    /// The inputs to call with: one, or one for each further value.
    pub(crate) fn inputs(&self) -> Vec<JsonObject> {
        let mut inputs = vec![self.input.clone()];
        if let Some((name, values)) = &self.further {
            inputs.extend(values.iter().map(|value| {
                let mut input = self.input.clone();
                input.insert(name.clone(), value.clone());
                input
            }));
        }
        inputs
    }
}

/// Values found so far, one place for each parameter.
pub(crate) struct Places<'a> {
    tool: &'a Tool,
    reading: &'a Reading<'a>,
    values: Vec<Option<Value>>,
    filling: Filling,
    /// Mentions that may not be used any more, by their place in the reading.
    taken: Vec<bool>,
    /// Where words stand that end a piece of free text before them, in order.
    text_ends: Vec<usize>,
}

impl<'a> Places<'a> {
    fn new(tool: &'a Tool, reading: &'a Reading<'a>) -> Self {
        let names = tool.exact_names();
        let taken = reading
            .mentions
            .iter()
            .map(|mention| match &mention.found {
                // The tool's own name in quotation marks is no argument.
                Found::Quoted(text) | Found::Path(text) | Found::Code(text) => {
                    names.iter().any(|name| name.eq_ignore_ascii_case(text))
                }
                _ => false,
            })
            .collect();
        Self {
            tool,
            reading,
            values: vec![None; tool.params.len()],
            filling: Filling::default(),
            taken,
            text_ends: tail::text_ends(reading),
        }
    }

    fn open(&self) -> impl Iterator<Item = (usize, &'a Param)> {
        let open: Vec<usize> = (0..self.values.len())
            .filter(|&i| self.values[i].is_none())
            .collect();
        let tool = self.tool;
        open.into_iter().map(move |i| (i, &tool.params[i]))
    }

    fn allows(&self, param: &Param, value: &Value) -> bool {
        fits(value, &param.schema, &self.tool.definition.input_schema)
    }

    /// Takes a value if it is allowed. `evidence` is how sure it is.
    fn put(&mut self, i: usize, value: Value, span: (usize, usize), evidence: f64) -> bool {
        let param = &self.tool.params[i];
        let free = self.values[i].is_none();
        if !free || !self.allows(param, &value) {
            return false;
        }
        self.values[i] = Some(value);
        self.filling.evidence += evidence;
        self.use_up(span);
        true
    }

    /// Takes note that a value was given which is not allowed.
    fn refuse(&mut self, param: &Param, span: (usize, usize)) {
        let said = self.reading.slice(span.0, span.1).trim().to_owned();
        if !self
            .filling
            .refused
            .iter()
            .any(|refusal| refusal.param == param.name)
        {
            self.filling.refused.push(Refusal {
                param: param.name.clone(),
                said,
            });
        }
        self.use_up(span);
    }

    fn use_up(&mut self, span: (usize, usize)) {
        for (mention, taken) in self.reading.mentions.iter().zip(&mut self.taken) {
            *taken |= mention.start < span.1 && span.0 < mention.end;
        }
        self.filling.spans.push(span);
    }

    fn is_used(&self, start: usize, end: usize) -> bool {
        self.filling
            .spans
            .iter()
            .any(|span| span.0 < end && start < span.1)
    }

    fn finish(mut self) -> Filling {
        let schema = &self.tool.definition.input_schema;
        for (param, value) in self.tool.params.iter().zip(&mut self.values) {
            if value.is_none() && param.required {
                // The schema's own word for what is meant when nothing is said.
                let default = param.schema.get("default");
                let only = (param.choices.len() == 1 && !matches!(param.kind, Kind::List(_)))
                    .then(|| param.choices.first())
                    .flatten();
                let implied = default.or(only).filter(|value| !value.is_null());
                *value = implied
                    .filter(|value| fits(value, &param.schema, schema))
                    .cloned();
            }
        }
        let refused = |name: &str, filling: &Filling| {
            filling.refused.iter().any(|refusal| refusal.param == name)
        };
        let mut input = Map::new();
        for (param, value) in self.tool.params.iter().zip(self.values) {
            match value {
                Some(value) => {
                    // A better value came after a refused one.
                    self.filling
                        .refused
                        .retain(|refusal| refusal.param != param.name);
                    input.insert(param.name.clone(), value);
                }
                None if param.required && !refused(&param.name, &self.filling) => {
                    self.filling.missing.push(param.name.clone());
                }
                None => {}
            }
        }
        self.filling.unused = self
            .reading
            .mentions
            .iter()
            .zip(&self.taken)
            .filter(|(mention, taken)| !**taken && !matches!(mention.found, Found::Name(_)))
            .count();
        let members = self.reading.mentions.iter().zip(&self.taken);
        let parts: HashSet<usize> = members
            .clone()
            .filter(|(_, taken)| **taken)
            .map(|(mention, _)| mention.group)
            .collect();
        let in_part = |mention: &Mention| parts.contains(&mention.group);
        let left_over = members
            .filter(|(mention, taken)| !**taken && in_part(mention))
            .filter(|(mention, _)| !matches!(mention.found, Found::Name(_)))
            .map(|(mention, _)| self.reading.slice(mention.start, mention.end).to_owned());
        self.filling.left_over = left_over.collect();
        self.filling.input = input;
        self.filling
    }
}

/// Fills a tool's parameters from a text.
pub(crate) fn fill(tool: &Tool, reading: &Reading<'_>) -> Filling {
    let mut places = Places::new(tool, reading);
    keyed::json_object(&mut places);
    keyed::fill(&mut places);
    choice::fill(&mut places);
    typed::fill(&mut places);
    count::fill(&mut places);
    tail::fill(&mut places);
    places.finish()
}

/// A value for one parameter from a text that was said in answer to a question about it: whatever
/// in it fits, or the whole text for free text.
pub(crate) fn answer(tool: &Tool, name: &str, reading: &Reading<'_>) -> Option<Value> {
    let index = tool.params.iter().position(|param| param.name == name)?;
    let mut places = Places::new(tool, reading);
    keyed::json_object(&mut places);
    keyed::fill(&mut places);
    if let Some(value) = places.values[index].take() {
        return Some(value);
    }
    let param = &tool.params[index];
    if let Some(value) = choice::said(&places, param) {
        return Some(value);
    }
    // "The last of these three" says which, and not that it is called three.
    let is_share = |mention: &&Mention| {
        matches!(mention.found, Found::Number(_)) && count::is_of_several(reading, mention, param)
    };
    let mut mentions = reading.mentions.iter().filter(|it| !is_share(it));
    let mentioned = mentions.find_map(|mention| {
        let value = convert::convert(mention, param, reading)?;
        places.allows(param, &value).then_some(value)
    });
    mentioned.or_else(|| tail::whole(&places, param))
}

#[cfg(test)]
#[path = "fill_tests.rs"]
mod tests;
