use super::*;

fn cycles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let parse = |(name, text): &(&str, &str)| ((*name).to_owned(), syn::parse_file(text).unwrap());
    find_cycles_across_folders(&files.iter().map(parse).collect())
}

const ROOT: (&str, &str) = (
    "lib.rs",
    "mod a; mod b; pub use a::First; pub use b::Second;",
);

#[test]
fn a_cycle_between_two_folders_is_found() {
    let files = [
        ROOT,
        ("a/mod.rs", "use crate::b::Second; pub struct First;"),
        (
            "b/mod.rs",
            "pub struct Second; fn f() -> crate::a::First { crate::a::First }",
        ),
    ];
    assert_eq!(cycles(&files), [["a/mod.rs", "b/mod.rs"]]);
}

#[test]
fn re_exports_are_followed_and_are_not_imports() {
    let through_the_root = [
        ROOT,
        ("a/mod.rs", "use crate::Second; pub struct First;"),
        ("b/mod.rs", "use crate::First; pub struct Second;"),
    ];
    assert_eq!(cycles(&through_the_root), [["a/mod.rs", "b/mod.rs"]]);
    let one_way = [
        ROOT,
        ("a/mod.rs", "use crate::Second; pub struct First;"),
        ("b/mod.rs", "pub struct Second;"),
    ];
    assert!(cycles(&one_way).is_empty());
}

#[test]
fn cycles_inside_one_folder_and_imports_of_tests_pass() {
    let inside = [
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod x; mod y; pub struct Base; use x::X;"),
        ("a/x.rs", "use super::y::Y; use super::Base; pub struct X;"),
        ("a/y.rs", "use super::x::X; pub struct Y;"),
    ];
    assert!(cycles(&inside).is_empty());
    let visibility = [
        ROOT,
        ("a/mod.rs", "use crate::b::Second; pub struct First;"),
        (
            "b/mod.rs",
            "pub struct Second; pub(in crate::a) struct Third;",
        ),
    ];
    assert!(cycles(&visibility).is_empty());
    let tests = [
        ROOT,
        ("a/mod.rs", "use crate::b::Second; pub struct First;"),
        (
            "b/mod.rs",
            "pub struct Second; #[cfg(test)] mod tests { use crate::a::First; }",
        ),
    ];
    assert!(cycles(&tests).is_empty());
}

#[test]
fn a_file_beside_its_folder_belongs_to_the_folder() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a.rs", "mod x; pub struct Base; use x::X;"),
        ("a/x.rs", "use super::Base; pub struct X;"),
    ];
    assert!(cycles(&files).is_empty());
}

#[test]
fn folders_that_need_each_other_are_found_without_a_cycle_of_files() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "mod x; mod y;"),
        ("a/x.rs", "use crate::b::Second;"),
        ("a/y.rs", "pub struct First;"),
        ("b/mod.rs", "pub struct Second; mod z;"),
        ("b/z.rs", "use crate::a::y::First;"),
    ];
    assert!(cycles(&files).is_empty());
    let parse = |(name, text): &(&str, &str)| ((*name).to_owned(), syn::parse_file(text).unwrap());
    let sources: Sources = files.iter().map(parse).collect();
    assert_eq!(find_cycles_of_folders(&sources), [["a", "b"]]);
}
