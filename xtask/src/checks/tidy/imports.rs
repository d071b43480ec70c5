//! Finds import cycles between the files of one crate.
//!
//! A file imports another file if it names an item of that file, in a `use` declaration or in a
//! path. An import of a re-exported item is an import of the file that defines the item. The
//! re-export itself does not count as an import.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::source::is_test_item;

#[cfg(test)]
#[path = "imports_tests.rs"]
mod tests;

/// Maximum number of re-exports that are followed for one item. A longer chain is a cycle.
const MAX_REEXPORTS: usize = 16;

/// The parsed files of one crate, by their path below `src/`, such as `run/mod.rs`.
pub(super) type Sources = BTreeMap<String, syn::File>;

/// The files that each file imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Returns the cycles whose files are in different folders, each as its sorted files.
pub(super) fn find_cycles_across_folders(sources: &Sources) -> Vec<Vec<String>> {
    let mut cycles = find_cycles(&find_imports(sources));
    cycles.retain(|files| {
        let folders: BTreeSet<_> = files.iter().map(|file| folder(file, sources)).collect();
        folders.len() > 1
    });
    cycles
}

/// Returns the cycles between the folders directly in `src/`. Ignores files directly in `src/`.
pub(super) fn find_cycles_of_folders(sources: &Sources) -> Vec<Vec<String>> {
    let top_folder = |file: &String| {
        let folder = folder(file, sources);
        Some(folder.split_once('/')?.0.to_owned())
    };
    let mut between = Imports::new();
    for (file, targets) in find_imports(sources) {
        let Some(from) = top_folder(&file) else {
            continue;
        };
        let others = targets.iter().filter_map(top_folder);
        let others = others.filter(|target| *target != from).collect::<Vec<_>>();
        between.entry(from).or_default().extend(others);
    }
    find_cycles(&between)
}

/// Returns the folder of a file. The file `x.rs` belongs to the folder `x/` if this folder exists.
fn folder(file: &str, sources: &Sources) -> String {
    let inside = format!("{}/", file.strip_suffix(".rs").unwrap_or(file));
    if sources.keys().any(|other| other.starts_with(&inside)) {
        return inside;
    }
    file.rsplit_once('/')
        .map_or_else(String::new, |(folder, _)| format!("{folder}/"))
}

/// Returns the files that each file imports.
fn find_imports(sources: &Sources) -> Imports {
    let files = sources
        .keys()
        .map(|file| (module_path(file), file.as_str()));
    let files: BTreeMap<String, &str> = files.collect();
    let mut names = BTreeMap::new();
    let mut used = Vec::new();
    for (file, parsed) in sources {
        let mut collector = PathCollector {
            files: &files,
            module: module_path(file),
            names: &mut names,
            used: Vec::new(),
        };
        collector.visit_file(parsed);
        used.push((file, collector.used));
    }
    let targets = |file: &String, paths: Vec<String>| {
        let targets = paths.into_iter();
        let targets = targets.filter_map(|path| find_defining_file(path, &files, &names));
        targets.filter(|target| target != file).collect()
    };
    let imports = used.into_iter();
    imports
        .map(|(file, paths)| (file.clone(), targets(file, paths)))
        .collect()
}

/// Returns the module path of a file, such as `run::tools` for `run/tools.rs`. The path of `lib.rs`
/// and `main.rs` is empty.
fn module_path(file: &str) -> String {
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let path = stem.strip_suffix("/mod").unwrap_or(stem);
    match path {
        "lib" | "main" => String::new(),
        path => path.replace('/', "::"),
    }
}

/// Returns the file that defines the item with the absolute path `path`. `names` contains the
/// targets of re-exports.
fn find_defining_file(
    mut path: String,
    files: &BTreeMap<String, &str>,
    names: &BTreeMap<String, String>,
) -> Option<String> {
    for _ in 0..MAX_REEXPORTS {
        let mut module = path.as_str();
        while !module.is_empty() && !files.contains_key(module) {
            module = parent_path(module);
        }
        // Splits the path after the first name inside the module: the path of that name, and the
        // rest.
        let tail = path[module.len()..].trim_start_matches("::");
        let start = path.len() - tail.len();
        let (name, rest) = path.split_at(tail.find("::").map_or(path.len(), |end| start + end));
        match names.get(name).filter(|_| name.len() > module.len()) {
            Some(target) => path = format!("{target}{rest}"),
            None => return files.get(module).map(|file| (*file).to_owned()),
        }
    }
    None
}

fn parent_path(path: &str) -> &str {
    path.rsplit_once("::").map_or("", |(parent, _)| parent)
}

fn join_path(module: &str, name: &str) -> String {
    match module {
        "" => name.to_owned(),
        module => format!("{module}::{name}"),
    }
}

/// Visitor that collects the paths in one file.
struct PathCollector<'a> {
    /// The file of each module.
    files: &'a BTreeMap<String, &'a str>,
    /// The current module.
    module: String,
    /// Targets of `use` declarations: the absolute path of the item, by the path under which the
    /// importing module can name it.
    names: &'a mut BTreeMap<String, String>,
    /// The absolute paths that the file names.
    used: Vec<String>,
}

impl PathCollector<'_> {
    /// Returns the absolute path of a relative one, or `None` for other crates.
    fn absolute_path(&self, path: &str) -> Option<String> {
        let mut base = match path.split("::").next() {
            Some("crate") => "",
            Some("self" | "super") => self.module.as_str(),
            _ => return None,
        };
        let mut steps = path.split("::").peekable();
        while let Some(step) = steps.next_if(|it| matches!(*it, "crate" | "self" | "super")) {
            if step == "super" {
                base = parent_path(base);
            }
        }
        Some(steps.fold(base.to_owned(), |path, step| join_path(&path, step)))
    }

    fn add_use(&mut self, tree: &syn::UseTree, prefix: &str, is_reexport: bool) {
        let (path, name) = match tree {
            syn::UseTree::Path(path) => {
                let prefix = join_path(prefix, &path.ident.to_string());
                return self.add_use(&path.tree, &prefix, is_reexport);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_use(tree, prefix, is_reexport);
                }
                return;
            }
            syn::UseTree::Glob(_) => (prefix.to_owned(), None),
            syn::UseTree::Name(name) if name.ident == "self" => {
                let name = prefix.rsplit("::").next().map(str::to_owned);
                (prefix.to_owned(), name)
            }
            syn::UseTree::Name(name) => {
                let name = name.ident.to_string();
                (join_path(prefix, &name), Some(name))
            }
            syn::UseTree::Rename(rename) => (
                join_path(prefix, &rename.ident.to_string()),
                Some(rename.rename.to_string()),
            ),
        };
        // A path in a `use` declaration may be relative and start with a child module.
        let first = path.split("::").next().unwrap_or_default();
        let is_child = self.files.contains_key(&join_path(&self.module, first));
        let child = is_child.then(|| join_path(&self.module, &path));
        let Some(path) = self.absolute_path(&path).or(child) else {
            return;
        };
        if !is_reexport {
            self.used.push(path.clone());
        }
        if let Some(name) = name {
            self.names.insert(join_path(&self.module, &name), path);
        }
    }
}

impl<'ast> Visit<'ast> for PathCollector<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            item if is_test_item(item) => {}
            syn::Item::Mod(child) => {
                let module = join_path(&self.module, &child.ident.to_string());
                let outer = std::mem::replace(&mut self.module, module);
                visit::visit_item_mod(self, child);
                self.module = outer;
            }
            syn::Item::Use(item) => {
                let is_reexport = !matches!(item.vis, syn::Visibility::Inherited);
                self.add_use(&item.tree, "", is_reexport);
            }
            other => visit::visit_item(self, other),
        }
    }

    /// Skips the path of `pub(in path)`, which is not a use of that module.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let steps = path.segments.iter().map(|step| step.ident.to_string());
        let text = steps.collect::<Vec<_>>().join("::");
        self.used.extend(self.absolute_path(&text));
        visit::visit_path(self, path);
    }
}

/// Returns the strongly connected components with more than one file, each sorted.
fn find_cycles(imports: &Imports) -> Vec<Vec<String>> {
    let targets_of = |file| (file, find_reachable_files(file, imports));
    let reachable: BTreeMap<&String, BTreeSet<&String>> = imports.keys().map(targets_of).collect();
    let components = reachable.iter().map(|(file, targets)| {
        let is_back =
            |target: &&&String| reachable.get(*target).is_some_and(|it| it.contains(file));
        let mutual = targets.iter().filter(is_back);
        mutual.map(|it| (*it).clone()).collect()
    });
    let components: BTreeSet<Vec<String>> = components.filter(|it: &Vec<_>| it.len() > 1).collect();
    components.into_iter().collect()
}

/// Returns all files that `file` imports, directly or through other files.
fn find_reachable_files<'a>(file: &'a String, imports: &'a Imports) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(next) = open.pop() {
        let targets = imports.get(next).into_iter().flatten();
        open.extend(targets.filter(|target| reached.insert(*target)));
    }
    reached
}
