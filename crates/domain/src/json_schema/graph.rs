//! A schema as a graph of nodes, with the references resolved.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::SchemaError;

/// Maximum number of edges. A reference counts once for each schema that it may point to.
const MAX_EDGES: usize = 100_000;

pub(super) type NodeId = usize;

/// The nodes of a schema. The root is the first.
#[derive(Debug)]
pub(super) struct SchemaGraph {
    pub(super) nodes: Vec<SchemaNode>,
}

/// A schema node and the nodes that it applies.
#[derive(Debug, Default)]
pub(super) struct SchemaNode {
    /// Applied to the same value: `$ref`, `anyOf`, `if` and the like.
    pub(super) same: Vec<NodeId>,
    /// Applied to the properties of these names.
    pub(super) properties: HashMap<String, NodeId>,
    /// Applied to properties whose name matches a pattern. The cost assumes that all match.
    pub(super) patterns: Vec<NodeId>,
    /// Applied to properties that `properties` does not name.
    pub(super) other_properties: Vec<NodeId>,
    /// Applied to the names of properties.
    pub(super) names: Vec<NodeId>,
    /// Applied to every item.
    pub(super) items: Vec<NodeId>,
    /// Applied to the first items, one each.
    pub(super) prefix: Vec<NodeId>,
    /// Whether the evaluation marks evaluated members: `unevaluatedProperties` or
    /// `unevaluatedItems`.
    pub(super) marks: bool,
    pub(super) unique: bool,
    /// Whether errors of nodes below copy their values: `anyOf` or `oneOf`.
    pub(super) alternatives: bool,
    /// Fixed cost for each value: keywords, and the values of `enum` and `const`.
    pub(super) fixed: u64,
    /// Fixed cost for each object: the names in `required` and `properties`.
    pub(super) per_object: u64,
    /// Cost for each byte of a text, in eighths: the size of `pattern`.
    pub(super) per_byte: u64,
    /// Cost for each byte of a property name, in eighths: the sizes of `patternProperties`.
    pub(super) per_name_byte: u64,
    /// Whether several nodes refer to this one, so that its cost is cached.
    pub(super) shared: bool,
}

/// Size of a `format`, which is matched like a pattern.
const FORMAT_SIZE: u64 = 8;

impl SchemaGraph {
    /// Reads a schema. Ignores keywords without effect on the cost.
    pub(super) fn new(schema: &Value) -> Result<Self, SchemaError> {
        let mut builder = Builder {
            root: schema,
            named: Named::collect(schema),
            ids: HashMap::new(),
            nodes: Vec::new(),
            open: Vec::new(),
            edges: 0,
        };
        builder.node(schema);
        while let Some((id, schema)) = builder.open.pop() {
            let node = builder.read(schema);
            let shared = builder.nodes[id].shared;
            builder.nodes[id] = SchemaNode { shared, ..node };
            if builder.edges > MAX_EDGES {
                return Err(SchemaError::TooLarge { max: MAX_EDGES });
            }
        }
        let nodes = builder.nodes;
        Ok(Self { nodes })
    }
}

/// Parts of a schema that a reference can name other than by a pointer.
#[derive(Default)]
struct Named<'a> {
    /// Schemas with an `$id`, with the last segment of its path.
    resources: Vec<(&'a str, &'a Value)>,
    anchors: HashMap<&'a str, Vec<&'a Value>>,
}

impl<'a> Named<'a> {
    fn collect(schema: &'a Value) -> Self {
        let mut named = Self::default();
        let mut open = vec![schema];
        while let Some(value) = open.pop() {
            match value {
                Value::Array(items) => open.extend(items),
                Value::Object(fields) => {
                    let text = |key: &str| fields.get(key).and_then(Value::as_str);
                    for id in [text("$id"), text("id")].into_iter().flatten() {
                        match id.strip_prefix('#') {
                            Some(name) => named.anchors.entry(name).or_default().push(value),
                            None => named.resources.push((last_segment(id), value)),
                        }
                    }
                    for anchor in [text("$anchor"), text("$dynamicAnchor")]
                        .into_iter()
                        .flatten()
                    {
                        named.anchors.entry(anchor).or_default().push(value);
                    }
                    open.extend(fields.values());
                }
                _ => {}
            }
        }
        named
    }
}

fn last_segment(uri: &str) -> &str {
    let path = uri.split('#').next().unwrap_or_default();
    path.rsplit(['/', ':']).next().unwrap_or_default()
}

struct Builder<'a> {
    root: &'a Value,
    named: Named<'a>,
    /// Nodes by the address of their schema, which stays where it is while the graph is built.
    ids: HashMap<*const Value, NodeId>,
    nodes: Vec<SchemaNode>,
    open: Vec<(NodeId, &'a Value)>,
    edges: usize,
}

impl<'a> Builder<'a> {
    /// Returns the node of a schema.
    fn node(&mut self, schema: &'a Value) -> NodeId {
        self.edges += 1;
        if let Some(&id) = self.ids.get(&std::ptr::from_ref(schema)) {
            self.nodes[id].shared = true;
            return id;
        }
        let id = self.nodes.len();
        self.ids.insert(std::ptr::from_ref(schema), id);
        self.nodes.push(SchemaNode::default());
        self.open.push((id, schema));
        id
    }

    fn nodes(&mut self, schemas: impl IntoIterator<Item = &'a Value>) -> Vec<NodeId> {
        let schemas = schemas
            .into_iter()
            .filter(|it| it.is_object() || it.is_boolean());
        schemas.map(|schema| self.node(schema)).collect()
    }

    fn read(&mut self, schema: &'a Value) -> SchemaNode {
        let mut node = SchemaNode::default();
        let Some(fields) = schema.as_object() else {
            return node;
        };
        node.fixed = length(fields.len());
        for (keyword, value) in fields {
            self.keyword(&mut node, keyword, value, fields);
        }
        node
    }

    fn keyword(
        &mut self,
        node: &mut SchemaNode,
        keyword: &str,
        value: &'a Value,
        fields: &'a Map<String, Value>,
    ) {
        let object = || value.as_object().into_iter().flat_map(Map::values);
        let array = || value.as_array().into_iter().flatten();
        match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                if let Some(reference) = value.as_str() {
                    let targets = self.targets(reference);
                    node.same.extend(self.nodes(targets));
                }
            }
            "allOf" => node.same.extend(self.nodes(array())),
            "anyOf" | "oneOf" => {
                node.alternatives = true;
                node.same.extend(self.nodes(array()));
            }
            "not" | "if" | "then" | "else" => node.same.extend(self.nodes([value])),
            "dependentSchemas" | "dependencies" => {
                node.per_object += length(value.as_object().map_or(0, Map::len));
                node.same.extend(self.nodes(object()));
            }
            "properties" => {
                let properties = value.as_object();
                node.per_object += length(properties.map_or(0, Map::len));
                for (name, schema) in properties.into_iter().flatten() {
                    let id = self.node(schema);
                    node.properties.insert(name.clone(), id);
                }
            }
            "patternProperties" => {
                let patterns = value.as_object().into_iter().flatten();
                for (pattern, _) in patterns {
                    node.per_name_byte += pattern_size(pattern);
                }
                node.patterns.extend(self.nodes(object()));
            }
            "additionalProperties" => node.other_properties.extend(self.nodes([value])),
            "unevaluatedProperties" => {
                node.marks = true;
                node.patterns.extend(self.nodes([value]));
            }
            "propertyNames" => node.names.extend(self.nodes([value])),
            "items" if value.is_array() => node.prefix.extend(self.nodes(array())),
            "prefixItems" => node.prefix.extend(self.nodes(array())),
            "items" | "additionalItems" | "contains" => node.items.extend(self.nodes([value])),
            "unevaluatedItems" => {
                node.marks = true;
                node.items.extend(self.nodes([value]));
            }
            "pattern" => node.per_byte += value.as_str().map_or(0, pattern_size),
            "format" => node.per_byte += FORMAT_SIZE,
            "enum" | "const" => node.fixed += super::cost::size(value),
            "required" => node.per_object += length(array().count()),
            "dependentRequired" => node.per_object += super::cost::size(value),
            "uniqueItems" => node.unique = fields.get(keyword) == Some(&Value::Bool(true)),
            _ => {}
        }
    }

    /// Returns the schemas that a reference may point to: a superset where several resources have
    /// the same file name, and nothing for a reference that leaves the schema.
    fn targets(&self, reference: &str) -> Vec<&'a Value> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = percent_decoded(fragment);
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let anchors = self.named.anchors.get(fragment.as_str());
            return anchors.cloned().unwrap_or_default();
        }
        let file = last_segment(uri);
        let root = uri.is_empty().then_some(self.root);
        let named = self.named.resources.iter();
        let named = named.filter(|(name, _)| uri.is_empty() || *name == file);
        let resources = root.into_iter().chain(named.map(|(_, schema)| *schema));
        resources
            .filter_map(|schema| schema.pointer(&fragment))
            .collect()
    }
}

fn percent_decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let (b'%', Some(code)) = (first, code) {
            bytes.push(code);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Estimates the number of states of a pattern's automaton: its atoms, multiplied by the
/// repetitions around them. An automaton that is simulated visits each state for each byte.
pub(super) fn pattern_size(pattern: &str) -> u64 {
    let mut groups: Vec<u64> = vec![0];
    // The size of the atom before a repetition.
    let mut last = 0_u64;
    let mut in_class = false;
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        let mut atom = 1;
        match char {
            '\\' => {
                // A Unicode class such as `\p{L}` has some hundred ranges.
                if matches!(chars.next(), Some('p' | 'P' | 'w' | 'W' | 'd' | 'D')) {
                    atom = 8;
                }
            }
            ']' if in_class => in_class = false,
            _ if in_class => continue,
            '[' => {
                in_class = true;
                continue;
            }
            '(' => {
                groups.push(0);
                continue;
            }
            ')' => {
                atom = if groups.len() > 1 {
                    groups.pop().unwrap_or(1)
                } else {
                    1
                };
            }
            '{' => {
                let text: String = chars.by_ref().take_while(|it| *it != '}').collect();
                let most = text
                    .split(',')
                    .filter_map(|it| it.trim().parse::<u64>().ok())
                    .max();
                let more = last.saturating_mul(most.unwrap_or(1).saturating_sub(1));
                if let Some(group) = groups.last_mut() {
                    *group = group.saturating_add(more);
                }
                last = last.saturating_add(more);
                continue;
            }
            _ => {}
        }
        if in_class {
            continue;
        }
        last = atom.max(1);
        if let Some(group) = groups.last_mut() {
            *group = group.saturating_add(last);
        }
    }
    groups.into_iter().fold(1, u64::saturating_add)
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
