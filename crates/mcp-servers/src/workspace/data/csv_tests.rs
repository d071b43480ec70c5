use serde_json::json;

use super::{
    ColumnType::{Integer, Real, Text},
    *,
};

fn rows(text: &str) -> Vec<Value> {
    let table = parse_csv(text, detect_delimiter(text)).unwrap();
    table.rows.into_iter().map(Value::from).collect()
}

fn columns(text: &str) -> Vec<(String, ColumnType)> {
    let table = parse_csv(text, detect_delimiter(text)).unwrap();
    let columns = table.columns.into_iter();
    columns.map(|column| (column.name, column.kind)).collect()
}

#[test]
fn quoted_values_may_contain_separators_quotes_and_line_breaks() {
    let text = "name,note\r\n\"Smith, J.\",\"said \"\"no\"\"\nand left\"\r\nLee,\r\n";
    assert_eq!(
        rows(text),
        [
            json!(["Smith, J.", "said \"no\"\nand left"]),
            json!(["Lee", null])
        ]
    );
}

#[test]
fn a_column_is_numeric_if_all_its_values_are() {
    let text =
        "id,price,zip,mixed,empty,big\n1,2.50,01234,1,,9223372036854775808\n-2,3,99999,x,,1\n";
    let kinds: Vec<_> = columns(text).into_iter().map(|it| it.1).collect();
    assert_eq!(kinds, [Integer, Real, Text, Text, Text, Text]);
    assert_eq!(
        rows(text),
        [
            json!([1, 2.5, "01234", "1", null, "9223372036854775808"]),
            json!([-2, 3.0, "99999", "x", null, "1"])
        ]
    );
    for not_number in [
        "1.", ".5", "+1", "0x10", "1e", "--1", "1 2", "NaN", "inf", "1_000", "00",
    ] {
        assert_eq!(rows(&format!("a\n{not_number}\n")), [json!([not_number])]);
    }
    assert_eq!(rows("a\n1e3\n-0.5\n"), [json!([1000.0]), json!([-0.5])]);
}

#[test]
fn headers_are_made_unique_names() {
    let names: Vec<_> = columns("a,,A,a \n1,2,3,4\n")
        .into_iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(names, ["a", "column_2", "A_2", "a_3"]);
    assert_eq!(parse_header("x,\"y\ny\",z\n1,2", b','), ["x", "y\ny", "z"]);
}

#[test]
fn semicolons_separate_values_if_the_header_has_no_comma() {
    assert_eq!(rows("a;b\n1,5;2\n"), [json!(["1,5", 2])]);
    assert_eq!(rows("a;b,c\n1;2,3\n"), [json!(["1;2", 3])]);
}

#[test]
fn errors_contain_the_line() {
    let fault = |text: &str| parse_csv(text, b',').unwrap_err().to_string();
    let expected = "line 3: found 3 values, but the first line has 2 column names";
    assert_eq!(fault("a,b\n1,2\n1,2,3\n"), expected);
    assert_eq!(parse_csv("", b',').unwrap().rows.len(), 0);
    assert_eq!(parse_csv("\n\n", b',').unwrap().columns.len(), 0);
}
