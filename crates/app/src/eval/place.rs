//! Maps paths in a YAML document to lines.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::Spanned;

/// The parts of a document with their positions.
#[derive(Debug)]
pub(super) struct Places(Spanned<Node>);

#[derive(Debug)]
enum Node {
    Leaf,
    List(Vec<Spanned<Node>>),
    Map(Vec<(String, Spanned<Node>)>),
}

impl Places {
    /// Parses a text. `None` if it is not YAML.
    pub(super) fn of(text: &str) -> Option<Self> {
        let options = serde_saphyr::options! { with_snippet: false };
        serde_saphyr::from_str_with_options(text, options)
            .ok()
            .map(Self)
    }

    /// Returns the line of a path such as `scenarios[2].turns[0]`, starting at 1. A missing part
    /// has the line of its parent.
    pub(super) fn line(&self, place: &str) -> Option<u64> {
        let mut node = &self.0;
        let mut rest = place;
        while !rest.is_empty() {
            let Some((next, after)) = node.value.step(rest) else {
                break;
            };
            node = next;
            rest = after;
        }
        let line = node.referenced.line();
        (line > 0).then_some(line)
    }

    /// Returns the path at a line and column, both starting at 1.
    pub(super) fn at(&self, until: (u64, u64)) -> Option<String> {
        self.around(until).pop().map(|(place, _)| place)
    }

    /// Returns the path of the nearest map before a position that has this field.
    pub(super) fn holding(&self, field: &str, until: (u64, u64)) -> Option<String> {
        let has =
            |node: &Node| matches!(node, Node::Map(it) if it.iter().any(|(name, _)| name == field));
        let mut around = self.around(until);
        let found = around.iter().rposition(|(_, node)| has(node))?;
        Some(around.swap_remove(found).0)
    }

    /// Returns the parts that contain a position, from the document to the innermost.
    fn around(&self, until: (u64, u64)) -> Vec<(String, &Node)> {
        let mut around = vec![(String::new(), &self.0.value)];
        self.0.value.last_until(until, &mut around);
        around
    }
}

impl Node {
    /// Splits a path into its first part and the rest.
    fn step<'p>(&self, path: &'p str) -> Option<(&Spanned<Node>, &'p str)> {
        match self {
            Self::Leaf => None,
            Self::List(items) => {
                let (number, rest) = path.strip_prefix('[')?.split_once(']')?;
                let item = items.get(number.parse::<usize>().ok()?)?;
                Some((item, rest.strip_prefix('.').unwrap_or(rest)))
            }
            Self::Map(fields) => {
                // A name may contain dots.
                let begun = fields.iter().filter_map(|(name, node)| {
                    let rest = path.strip_prefix(name.as_str())?;
                    let ends = rest.is_empty() || rest.starts_with(['.', '[']);
                    ends.then(|| (name.len(), node, rest.strip_prefix('.').unwrap_or(rest)))
                });
                let longest = begun.max_by_key(|(length, ..)| *length);
                longest.map(|(_, node, rest)| (node, rest))
            }
        }
    }

    /// Adds the innermost part that starts at or before a position.
    fn last_until<'n>(&'n self, until: (u64, u64), around: &mut Vec<(String, &'n Self)>) {
        let begins =
            |node: &Spanned<Self>| (node.referenced.line(), node.referenced.column()) <= until;
        let path = around.last().map_or("", |(path, _)| path.as_str());
        let next = match self {
            Self::Leaf => None,
            Self::List(items) => {
                let last = items.iter().rposition(begins);
                last.map(|at| (format!("{path}[{at}]"), &items[at].value))
            }
            Self::Map(fields) => {
                let last = fields.iter().rfind(|(_, node)| begins(node));
                let dot = if path.is_empty() { "" } else { "." };
                last.map(|(name, node)| (format!("{path}{dot}{name}"), &node.value))
            }
        };
        if let Some((path, node)) = next {
            around.push((path, node));
            node.last_until(until, around);
        }
    }
}

impl<'de> Deserialize<'de> for Places {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Spanned::deserialize(from).map(Self)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_none<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Node, D::Error> {
        from.deserialize_any(Any)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = from.next_key::<String>()? {
            fields.push((name, from.next_value()?));
        }
        Ok(Node::Map(fields))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Node, D::Error> {
        IgnoredAny::deserialize(from).map(|_| Node::Leaf)
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
        let places = Places::of(TEXT).unwrap();
        for (place, line) in [
            ("title", 1),
            ("files.src/a.rs", 3),
            ("scenarios[0].name", 5),
            ("scenarios[0].turns[1].say", 8),
            ("scenarios[0].turns[1].calls[0].input.id", 8),
            // What is not there is missing in what is.
            ("scenarios[0].turns[1].answer.matches", 8),
            ("scenarios[3].name", 5),
        ] {
            assert_eq!(places.line(place), Some(line), "{place}");
        }
    }

    #[test]
    fn the_map_of_a_field_is_named() {
        let places = Places::of(TEXT).unwrap();
        for (field, at, place) in [
            // The value before it is deeper, or one of another map.
            ("scenarios", (4, 1), ""),
            ("turns", (6, 5), "scenarios[0]"),
            ("calls", (8, 21), "scenarios[0].turns[1]"),
            ("say", (8, 10), "scenarios[0].turns[1]"),
        ] {
            assert_eq!(places.holding(field, at).as_deref(), Some(place), "{field}");
        }
        assert_eq!(places.holding("nowhere", (8, 21)), None);
    }

    #[test]
    fn what_stands_at_a_place_is_named() {
        let places = Places::of(TEXT).unwrap();
        for ((line, column), place) in [
            ((1, 8), "title"),
            ((5, 11), "scenarios[0].name"),
            ((7, 14), "scenarios[0].turns[0].say"),
        ] {
            assert_eq!(places.at((line, column)).as_deref(), Some(place));
        }
    }
}
