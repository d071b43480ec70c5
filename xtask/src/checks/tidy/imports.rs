//! Import cycles between the files of one crate.
//!
//! An arrow leads from a file to every file whose items it names, through `use` declarations and
//! through paths in code. Re-exports are followed to the file that defines the item, and are not
//! arrows themselves.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use syn::visit::{self, Visit};

use super::source::is_test_item;

#[cfg(test)]
#[path = "imports_tests.rs"]
mod tests;

/// A re-export chain longer than this is a cycle of re-exports.
const MAX_REEXPORTS: usize = 16;

/// The parsed files of one crate, by their path below `src/`, such as `run/mod.rs`.
pub(super) type Sources = BTreeMap<String, syn::File>;

/// Returns the cycles whose files are in different folders, each as its sorted files.
pub(super) fn cycles_across_folders(sources: &Sources) -> Vec<Vec<String>> {
    let arrows = arrows(sources);
    components(&arrows)
        .into_iter()
        .filter(|files| {
            let folders: BTreeSet<_> = files.iter().map(|file| folder(file, sources)).collect();
            folders.len() > 1
        })
        .collect()
}

/// Returns the cycles between the folders directly in `src/`. The files directly in `src/` are not
/// part of them.
pub(super) fn cycles_of_folders(sources: &Sources) -> Vec<Vec<String>> {
    let mut between: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, targets) in arrows(sources) {
        let Some(from) = top_folder(&file, sources) else {
            continue;
        };
        let targets = targets
            .iter()
            .filter_map(|target| top_folder(target, sources));
        let others = targets.filter(|target| *target != from);
        between.entry(from.clone()).or_default().extend(others);
    }
    components(&between)
}

/// Returns the first folder below `src/` that a file belongs to.
fn top_folder(file: &str, sources: &Sources) -> Option<String> {
    let folder = folder(file, sources);
    Some(folder.split_once('/')?.0.to_owned())
}

/// Returns the folder of a file. `x.rs` belongs to the folder `x/` if there is one.
fn folder(file: &str, sources: &Sources) -> String {
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let inside = format!("{stem}/");
    if sources.keys().any(|other| other.starts_with(&inside)) {
        return inside;
    }
    file.rsplit_once('/')
        .map_or_else(String::new, |(folder, _)| format!("{folder}/"))
}

/// A module with its file and the names that it brings into scope.
#[derive(Default)]
struct Module {
    file: String,
    children: HashMap<String, usize>,
    /// Absolute paths by name, from `use` declarations.
    names: HashMap<String, Vec<String>>,
    /// Absolute paths that the code of this module names.
    used: Vec<Vec<String>>,
}

/// Returns the files that each file names. A library and its binary are separate trees.
fn arrows(sources: &Sources) -> BTreeMap<String, BTreeSet<String>> {
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for root in ["lib.rs", "main.rs"] {
        let Some(file) = sources.get(root) else {
            continue;
        };
        let mut tree = Tree::default();
        tree.add_module(sources, root, &[], "", &file.items);
        for module in &tree.modules {
            let targets = arrows.entry(module.file.clone()).or_default();
            let used = module.used.iter();
            let files = used.filter_map(|path| tree.file_of(path, 0));
            targets.extend(files.filter(|target| *target != module.file));
        }
    }
    arrows
}

#[derive(Default)]
struct Tree {
    modules: Vec<Module>,
}

impl Tree {
    /// Adds a module and its children; returns its index. `folder` holds the files of its children
    /// and ends with `/`, or is empty.
    fn add_module(
        &mut self,
        sources: &Sources,
        file: &str,
        path: &[String],
        folder: &str,
        items: &[syn::Item],
    ) -> usize {
        let index = self.modules.len();
        let children = items.iter().filter_map(|item| match item {
            syn::Item::Mod(child) => Some(child.ident.to_string()),
            _ => None,
        });
        let mut names = Names {
            path,
            children: children.collect(),
            module: Module {
                file: file.to_owned(),
                ..Module::default()
            },
        };
        for item in items {
            names.visit_item(item);
        }
        self.modules.push(names.module);
        for item in items {
            let syn::Item::Mod(child) = item else {
                continue;
            };
            if is_test_item(item) {
                continue;
            }
            let name = child.ident.to_string();
            let mut child_path = path.to_vec();
            child_path.push(name.clone());
            let child_folder = format!("{folder}{name}/");
            let child_index = if let Some((_, items)) = &child.content {
                self.add_module(sources, file, &child_path, &child_folder, items)
            } else {
                let candidates = [
                    format!("{folder}{name}.rs"),
                    format!("{child_folder}mod.rs"),
                ];
                let found = candidates
                    .iter()
                    .find_map(|name| sources.get_key_value(name));
                let Some((file, parsed)) = found else {
                    continue;
                };
                self.add_module(sources, file, &child_path, &child_folder, &parsed.items)
            };
            self.modules[index].children.insert(name, child_index);
        }
        index
    }

    /// Returns the file that defines the item with an absolute path.
    fn file_of(&self, path: &[String], reexports: usize) -> Option<String> {
        let mut module = self.modules.first()?;
        for (at, name) in path.iter().enumerate() {
            if let Some(&child) = module.children.get(name) {
                module = &self.modules[child];
                continue;
            }
            if reexports < MAX_REEXPORTS
                && let Some(target) = module.names.get(name)
            {
                let target: Vec<String> = target.iter().chain(&path[at + 1..]).cloned().collect();
                return self.file_of(&target, reexports + 1);
            }
            break;
        }
        Some(module.file.clone())
    }
}

/// Collects the names of one module.
struct Names<'a> {
    path: &'a [String],
    children: BTreeSet<String>,
    module: Module,
}

impl Names<'_> {
    /// Returns the absolute path of a relative one, or `None` for other crates.
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let mut base = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.path.to_vec(),
            _ => return None,
        };
        let mut rest = path;
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "super" => {
                    base.pop();
                }
                "crate" | "self" => {}
                _ => break,
            }
            rest = others;
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    fn add_use(&mut self, tree: &syn::UseTree, prefix: &mut Vec<String>, is_reexport: bool) {
        match tree {
            syn::UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.add_use(&path.tree, prefix, is_reexport);
                prefix.pop();
            }
            syn::UseTree::Name(name) => {
                let name = name.ident.to_string();
                self.add_name(&name.clone(), name, prefix, is_reexport);
            }
            syn::UseTree::Rename(rename) => {
                let (name, as_name) = (rename.ident.to_string(), rename.rename.to_string());
                self.add_name(&name, as_name, prefix, is_reexport);
            }
            syn::UseTree::Glob(_) => {
                if let Some(path) = self.local(prefix)
                    && !is_reexport
                {
                    self.module.used.push(path);
                }
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_use(tree, prefix, is_reexport);
                }
            }
        }
    }

    fn add_name(&mut self, name: &str, as_name: String, prefix: &[String], is_reexport: bool) {
        let mut path = prefix.to_vec();
        if name != "self" {
            path.push(name.to_owned());
        }
        let as_name = if as_name == "self" {
            prefix.last().cloned().unwrap_or_default()
        } else {
            as_name
        };
        if let Some(path) = self.local(&path) {
            if !is_reexport {
                self.module.used.push(path.clone());
            }
            self.module.names.insert(as_name, path);
        }
    }

    /// Returns the absolute path of a `use` declaration, which may start with a child module.
    fn local(&self, path: &[String]) -> Option<Vec<String>> {
        self.absolute(path).or_else(|| {
            let first = path.first()?;
            self.children.contains(first).then(|| {
                let mut absolute = self.path.to_vec();
                absolute.extend(path.iter().cloned());
                absolute
            })
        })
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_test_item(item) {
            return;
        }
        match item {
            // Child modules have separate namespaces.
            syn::Item::Mod(_) => {}
            syn::Item::Use(item) => {
                let is_reexport = !matches!(item.vis, syn::Visibility::Inherited);
                self.add_use(&item.tree, &mut Vec::new(), is_reexport);
            }
            other => visit::visit_item(self, other),
        }
    }

    /// Skips the path of `pub(in path)`, which is not a use of that module.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        if let Some(path) = self.absolute(&segments) {
            self.module.used.push(path);
        }
        visit::visit_path(self, path);
    }
}

/// Returns the strongly connected components with more than one file, each sorted.
fn components(arrows: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reachable: BTreeMap<&str, BTreeSet<&str>> = arrows
        .keys()
        .map(|file| (file.as_str(), reachable_from(file, arrows)))
        .collect();
    let reaches =
        |from: &str, to: &str| reachable.get(from).is_some_and(|files| files.contains(to));
    let mut components = BTreeSet::new();
    for (file, targets) in &reachable {
        let in_cycle = targets.iter().filter(|target| reaches(target, file));
        let component: Vec<String> = in_cycle.map(|target| (*target).to_owned()).collect();
        if component.len() > 1 {
            components.insert(component);
        }
    }
    components.into_iter().collect()
}

/// Returns every file that a file reaches over at least one arrow.
fn reachable_from<'a>(
    file: &str,
    arrows: &'a BTreeMap<String, BTreeSet<String>>,
) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![file];
    while let Some(next) = open.pop() {
        for target in arrows.get(next).into_iter().flatten() {
            if reached.insert(target.as_str()) {
                open.push(target);
            }
        }
    }
    reached
}
