//! Conversion of JSON and JSON Lines files to tables.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Column, ColumnType, Table, TableError, check_table_size};

/// Parses a JSON file. The records are the items of an array. If the file is an object with exactly
/// one member that is an array of objects, as many services send it, the records are the items of
/// this array. Any other value is a single record.
pub(super) fn parse_json(text: &str) -> Result<Table, TableError> {
    let value: Value = serde_json::from_str(text).map_err(|error| TableError {
        line: error.line(),
        problem: message_without_position(&error),
    })?;
    let records = match value {
        Value::Array(records) => records,
        Value::Object(mut object) => match find_records_member(&object) {
            Some(name) => match object.swap_remove(&name) {
                Some(Value::Array(records)) => records,
                _ => Vec::new(),
            },
            None => vec![Value::Object(object)],
        },
        other => vec![other],
    };
    // Errors report line 1 for every record, because the line numbers of the records are unknown.
    build_table(records.into_iter().map(|record| (1, record)))
}

pub(super) fn parse_json_lines(text: &str) -> Result<Table, TableError> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let records = lines.map(|(index, text)| {
        let line = index + 1;
        let record = serde_json::from_str(text).map_err(|error| TableError {
            line,
            problem: message_without_position(&error),
        });
        record.map(|record| (line, record))
    });
    build_table(records.collect::<Result<Vec<_>, _>>()?)
}

/// Returns the name of the member of `object` that is a nonempty array of objects. Returns `None`
/// if there is no such member or several of them.
fn find_records_member(object: &Map<String, Value>) -> Option<String> {
    let mut arrays = object.iter().filter(|(_, value)| {
        let records = value.as_array();
        records.is_some_and(|it| !it.is_empty() && it.iter().all(Value::is_object))
    });
    match (arrays.next(), arrays.next()) {
        (Some((name, _)), None) => Some(name.clone()),
        _ => None,
    }
}

/// Returns the message of a parse error without its position, which the caller stores separately.
fn message_without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(place) => text[..place].to_owned(),
        None => text,
    }
}

/// Creates a table from records, each with its line number for errors. All member names become
/// columns, in the order of their first occurrence. Records that are not objects become values of a
/// column `value`.
fn build_table(records: impl IntoIterator<Item = (usize, Value)>) -> Result<Table, TableError> {
    let mut columns: Vec<(String, Option<ColumnType>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for (line, record) in records {
        let members = match record {
            Value::Object(members) => members,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        let mut row = vec![Value::Null; columns.len()];
        for (name, value) in members {
            let place = *places.entry(name).or_insert_with_key(|name| {
                columns.push((name.clone(), None));
                row.push(Value::Null);
                columns.len() - 1
            });
            if let Some((_, known)) = columns.get_mut(place) {
                let kinds = known.take().into_iter().chain(detect_type(&value));
                *known = kinds.reduce(ColumnType::common_type);
            }
            if let Some(cell) = row.get_mut(place) {
                *cell = value;
            }
        }
        rows.push(row);
        check_table_size(columns.len(), rows.len(), line)?;
    }
    for row in &mut rows {
        row.resize(columns.len(), Value::Null);
    }
    let columns = columns.into_iter().map(|(name, kind)| Column {
        name,
        kind: kind.unwrap_or(ColumnType::Mixed),
    });
    Ok(Table {
        columns: columns.collect(),
        rows,
    })
}

fn detect_type(value: &Value) -> Option<ColumnType> {
    match value {
        Value::Null => None,
        Value::String(_) => Some(ColumnType::Text),
        Value::Number(number) if number.is_i64() => Some(ColumnType::Integer),
        Value::Number(_) => Some(ColumnType::Real),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => Some(ColumnType::Mixed),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shape(table: &Table) -> Value {
        let columns = table.columns.iter();
        let columns: Vec<_> = columns
            .map(|it| (it.name.clone(), it.kind.name()))
            .collect();
        json!([columns, table.rows])
    }

    #[test]
    fn columns_are_the_names_of_all_members() {
        let table =
            parse_json(r#"[{"a": 1, "b": "x"}, {"b": "y", "c": [1]}, {"a": 2.5}]"#).unwrap();
        let expected = json!([
            [["a", "number"], ["b", "text"], ["c", "mixed"]],
            [[1, "x", null], [null, "y", [1]], [2.5, null, null]]
        ]);
        assert_eq!(shape(&table), expected);
    }

    #[test]
    fn the_only_array_of_records_is_found() {
        let wrapped = r#"{"page": 1, "items": [{"a": 1}], "tags": ["x"]}"#;
        assert_eq!(
            shape(&parse_json(wrapped).unwrap()),
            json!([[["a", "integer"]], [[1]]])
        );
        let two = r#"{"x": [{"a": 1}], "y": [{"a": 1}]}"#;
        assert_eq!(parse_json(two).unwrap().rows.len(), 1);
        assert_eq!(parse_json(two).unwrap().columns.len(), 2);
        assert_eq!(
            shape(&parse_json("[1, 2]").unwrap()),
            json!([[["value", "integer"]], [[1], [2]]])
        );
        assert_eq!(parse_json("[]").unwrap().rows.len(), 0);
        assert_eq!(parse_json("7").unwrap().rows, [[json!(7)]]);
    }

    #[test]
    fn errors_in_json_lines_contain_the_line() {
        let table = parse_json_lines("{\"a\": true}\n\n{\"a\": null}\r\n").unwrap();
        assert_eq!(shape(&table), json!([[["a", "mixed"]], [[true], [null]]]));
        let fault = parse_json_lines("{}\n\n{\"a\": }\n").unwrap_err();
        assert_eq!(fault.to_string(), "line 3: expected value");
        let fault = parse_json("[\n1,\n2\n").unwrap_err();
        assert_eq!(fault.to_string(), "line 4: EOF while parsing a list");
    }
}
