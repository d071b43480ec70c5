//! The fields of one map of a recipe, under any of their names.

use serde_json::{Map, Value};
use switchboard_domain::nearest::nearest;

use super::RecipeError;

/// A key and its other names, all in `snake_case`.
pub(super) type Key = (&'static str, &'static [&'static str]);

/// The fields of one map, each read with its place in every error. A field that is there but `null`
/// counts as not given.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    given: Vec<(&'static str, &'a str, &'a Value)>,
    /// Keys that are not known.
    pub(super) unknown: Vec<&'a str>,
    place: String,
}

impl<'a> Fields<'a> {
    /// Takes a map whose keys are all known. `place` is empty for the whole document.
    pub(super) fn of(value: &'a Value, place: &str, known: &[Key]) -> Result<Self, RecipeError> {
        let this = Self::lenient(value, place, known)?;
        match this.unknown.first() {
            None => Ok(this),
            Some(unknown) => {
                let names = known
                    .iter()
                    .flat_map(|(key, others)| std::iter::once(key).chain(others.iter()))
                    .copied();
                Err(RecipeError::UnknownKey {
                    path: this.path(unknown),
                    nearest: nearest(&snake(unknown), names).map(str::to_owned),
                    known: known.iter().map(|(key, _)| (*key).to_owned()).collect(),
                })
            }
        }
    }

    /// Takes any map; what is not known is set aside.
    pub(super) fn lenient(
        value: &'a Value,
        place: &str,
        known: &[Key],
    ) -> Result<Self, RecipeError> {
        let Some(fields) = value.as_object() else {
            let what = if place.is_empty() {
                "the recipe"
            } else {
                place
            };
            return Err(RecipeError::wrong(what, "a map of keys"));
        };
        let mut this = Self {
            given: Vec::new(),
            unknown: Vec::new(),
            place: place.to_owned(),
        };
        for (written, value) in fields {
            let name = snake(written);
            let key = known
                .iter()
                .find(|(key, others)| *key == name || others.contains(&name.as_str()));
            match key {
                None => this.unknown.push(written),
                Some(_) if value.is_null() => {}
                Some((key, _)) => {
                    if let Some((_, first, _)) = this.given.iter().find(|(name, ..)| name == key) {
                        return Err(RecipeError::Twice {
                            first: this.path(first),
                            second: this.path(written),
                        });
                    }
                    this.given.push((key, written, value));
                }
            }
        }
        Ok(this)
    }

    /// The place of a key, as it is written if it is there.
    pub(super) fn path(&self, key: &str) -> String {
        let written = self.given.iter().find(|(name, ..)| *name == key);
        let written = written.map_or(key, |(_, written, _)| written);
        if self.place.is_empty() {
            written.to_owned()
        } else {
            format!("{}.{written}", self.place)
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.given
            .iter()
            .find(|(name, ..)| *name == key)
            .map(|(.., value)| *value)
    }

    /// Reads a field by `take`, which gives `None` if it is not as `expected`.
    pub(super) fn read<T>(
        &self,
        key: &str,
        expected: &str,
        take: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, RecipeError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match take(value) {
            Some(value) => Ok(Some(value)),
            None => Err(RecipeError::wrong(self.path(key), expected)),
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, RecipeError> {
        self.read(key, "text, not empty", |value| {
            value
                .as_str()
                .map(str::trim)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        })
    }

    pub(super) fn required_text(&self, key: &str) -> Result<String, RecipeError> {
        self.text(key)?.ok_or_else(|| RecipeError::Missing {
            path: self.path(key),
        })
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, RecipeError> {
        self.read(key, "true or false", Value::as_bool)
    }

    pub(super) fn count(&self, key: &str) -> Result<Option<u32>, RecipeError> {
        self.read(key, "a whole number from 1 on", |value| {
            value
                .as_u64()
                .and_then(|number| u32::try_from(number).ok())
                .filter(|&number| number > 0)
        })
    }

    pub(super) fn big_count(&self, key: &str) -> Result<Option<u64>, RecipeError> {
        self.read(key, "a whole number from 1 on", |value| {
            value.as_u64().filter(|&number| number > 0)
        })
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, RecipeError> {
        self.read(key, "a number from 0 on", |value| {
            value.as_f64().filter(|number| *number >= 0.0)
        })
    }

    /// One name or a list of them.
    pub(super) fn names(&self, key: &str) -> Result<Option<Vec<String>>, RecipeError> {
        self.read(key, "a name or a list of names", |value| match value {
            Value::Array(items) => items.iter().map(name).collect(),
            one => name(one).map(|name| vec![name]),
        })
    }

    /// One of these words.
    pub(super) fn one_of<T: Copy>(
        &self,
        key: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, RecipeError> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let expected = format!("one of {}", words.join(", "));
        self.read(key, &expected, |value| {
            let word = value.as_str()?;
            choices
                .iter()
                .find(|(choice, _)| *choice == word)
                .map(|(_, value)| *value)
        })
    }
}

fn name(value: &Value) -> Option<String> {
    value
        .as_str()
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
}

/// Whether a map has a key, under any of the ways to write it.
pub(super) fn has(fields: &Map<String, Value>, key: &str) -> bool {
    fields.keys().any(|written| snake(written) == key)
}

/// `camelCase` and `kebab-case` as `snake_case`.
pub(super) fn snake(key: &str) -> String {
    let mut name = String::with_capacity(key.len() + 4);
    let mut after_small = false;
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            if after_small {
                name.push('_');
            }
            name.push(c.to_ascii_lowercase());
            after_small = false;
        } else {
            name.push(if c == '-' { '_' } else { c });
            after_small = c.is_ascii_lowercase() || c.is_ascii_digit();
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_is_known_however_it_is_written() {
        for (written, name) in [
            ("mcpTools", "mcp_tools"),
            ("max_tools_per_run", "max_tools_per_run"),
            ("max-tools-per-run", "max_tools_per_run"),
            ("uniqueId", "unique_id"),
            ("ragTemplate2", "rag_template2"),
            ("ID", "id"),
        ] {
            assert_eq!(snake(written), name);
        }
    }

    #[test]
    fn errors_name_the_place_as_it_is_written() {
        let known: [Key; 2] = [("max_steps", &["steps"]), ("name", &[])];
        let of = |value: &Value| Fields::of(value, "limits", &known).map(|_| ()).unwrap_err();
        assert_eq!(
            of(&json!({"maxStep": 1})).to_string(),
            "`limits.maxStep` is no known key (did you mean `max_steps`?); there are: max_steps, name"
        );
        assert_eq!(
            of(&json!({"steps": 1, "maxSteps": 2})).to_string(),
            "`limits.steps` and `limits.maxSteps` say the same thing: keep one of them"
        );
        assert_eq!(of(&json!([])).to_string(), "`limits` must be a map of keys");
        let value = json!({"maxSteps": 0, "name": null});
        let fields = Fields::of(&value, "limits", &known).unwrap();
        assert_eq!(
            fields.count("max_steps").unwrap_err().to_string(),
            "`limits.maxSteps` must be a whole number from 1 on"
        );
        assert_eq!(fields.text("name"), Ok(None));
    }
}
