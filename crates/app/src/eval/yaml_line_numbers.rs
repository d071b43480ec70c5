//! Finds the line of a YAML document that belongs to a path, for error messages.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{
        self, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use serde_saphyr::Spanned;

/// A parsed YAML document with the position of each value.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct YamlLineNumbers(Spanned<YamlNode>);

#[derive(Debug)]
enum YamlNode {
    Leaf,
    List(Vec<Spanned<YamlNode>>),
    Map(BTreeMap<String, Spanned<YamlNode>>),
}

impl YamlLineNumbers {
    /// Parses a YAML document. Returns `None` if the text is not valid YAML.
    pub(super) fn parse_yaml(text: &str) -> Option<Self> {
        let options = serde_saphyr::options! { with_snippet: false };
        serde_saphyr::from_str_with_options(text, options)
            .ok()
            .map(Self)
    }

    /// Returns the line number, starting at 1, of the value at a path such as
    /// `scenarios[2].turns[0]`. If the value is missing, returns the line of the value that should
    /// contain it. Returns `None` if the line is unknown.
    pub(super) fn find_line(&self, place: &str) -> Option<u64> {
        let (mut node, mut rest) = (&self.0, place);
        while let Some(next) = node.value.find_child_node(rest) {
            (node, rest) = next;
        }
        let line = node.referenced.line();
        (line > 0).then_some(line)
    }
}

impl YamlNode {
    /// Returns the child node that `path` begins with, such as `turns` of `turns[0]`, and the rest
    /// of the path. Returns `None` for a missing child.
    fn find_child_node<'p>(&self, path: &'p str) -> Option<(&Spanned<YamlNode>, &'p str)> {
        match self {
            Self::Leaf => None,
            Self::List(items) => {
                let (number, rest) = path.strip_prefix('[')?.split_once(']')?;
                let item = items.get(number.parse::<usize>().ok()?)?;
                Some((item, rest.strip_prefix('.').unwrap_or(rest)))
            }
            Self::Map(fields) => {
                // A field name may contain dots, so the longest name that starts the path is used.
                let begun = fields.iter().filter_map(|(name, node)| {
                    let rest = path.strip_prefix(name.as_str())?;
                    let ends = rest.is_empty() || rest.starts_with(['.', '[']);
                    ends.then(|| (node, rest.strip_prefix('.').unwrap_or(rest)))
                });
                begun.min_by_key(|(_, rest)| rest.len())
            }
        }
    }
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(YamlNodeVisitor)
    }
}

struct YamlNodeVisitor;

impl<'de> Visitor<'de> for YamlNodeVisitor {
    type Value = YamlNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<YamlNode, E> {
        Ok(YamlNode::Leaf)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<YamlNode, E> {
        Ok(YamlNode::Leaf)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<YamlNode, E> {
        Ok(YamlNode::Leaf)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<YamlNode, E> {
        Ok(YamlNode::Leaf)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<YamlNode, E> {
        Ok(YamlNode::Leaf)
    }

    fn visit_unit<E: de::Error>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Leaf)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, from: A) -> Result<YamlNode, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(from)).map(YamlNode::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, from: A) -> Result<YamlNode, A::Error> {
        BTreeMap::deserialize(MapAccessDeserializer::new(from)).map(YamlNode::Map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
title: A suite
files:
  src/a.rs: fn main() {}
scenarios:
  - name: One
    turns:
      - say: Hello
      - {say: Again, calls: [{tool: x, input: {id: {$like: 1}}}]}
";

    #[test]
    fn what_a_place_names_is_found() {
        let places = YamlLineNumbers::parse_yaml(TEXT).unwrap();
        for (place, line) in [
            ("title", 1),
            ("files.src/a.rs", 3),
            ("scenarios[0].name", 5),
            ("scenarios[0].turns[1].say", 8),
            ("scenarios[0].turns[1].calls[0].input.id", 8),
            // An absent key has the position of the object that lacks it.
            ("scenarios[0].turns[1].answer.matches", 8),
            ("scenarios[3].name", 5),
        ] {
            assert_eq!(places.find_line(place), Some(line), "{place}");
        }
    }
}
