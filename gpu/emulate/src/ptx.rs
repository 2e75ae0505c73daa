//! The text of a module: its kernels, their parameters and statements.

use std::collections::HashMap;

/// A kernel as the module spells it.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) parameters: Vec<Variable>,
    /// Statements in order, without what declares.
    pub(crate) statements: Vec<Statement>,
    /// Places of labels, as statements that follow them.
    pub(crate) labels: HashMap<String, usize>,
    /// Variables in memory of each unit.
    pub(crate) local: Vec<Variable>,
    /// Variables in memory of a block, the module's included; one without a length comes last and is as long as a launch says.
    pub(crate) shared: Vec<Variable>,
}

/// A variable in memory.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) bytes: usize,
    pub(crate) alignment: usize,
}

/// `@predicate operation operands;`
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) guard: Option<(String, bool)>,
    pub(crate) operation: String,
    /// Braces and brackets are kept: `{%r1, %r2}`, `[%rd1+8]`.
    pub(crate) operands: Vec<String>,
}

impl Statement {
    pub(crate) fn text(&self) -> String {
        format!("{} {}", self.operation, self.operands.join(", "))
    }
}

/// Every kernel of a module.
///
/// # Errors
/// Text that isn't understood, quoted.
pub(crate) fn entries(text: &str) -> Result<Vec<Entry>, String> {
    let text = without_comments(text);
    let mut entries = Vec::new();
    let mut module_shared = Vec::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find(['{', ';', '\n']) {
        let line = rest[..start].trim();
        let is_function = line.contains(".entry") || line.contains(".func");
        if !is_function {
            rest = &rest[start + 1..];
            if line.contains(".shared") {
                module_shared.push(variable(line)?);
            } else if line.starts_with(".global") || line.contains(" .global ") || line.starts_with(".const") {
                return Err(format!("not supported: a variable of the module, `{line}`"));
            }
            continue;
        }
        let open = rest.find('{').ok_or_else(|| format!("a function without a body: `{line}`"))?;
        let length = body_length(&rest[open..]).ok_or_else(|| format!("a body without an end: `{line}`"))?;
        let (head, body) = (&rest[..open], &rest[open + 1..open + length - 1]);
        if head.contains(".entry") {
            entries.push(entry(head, body, &module_shared)?);
        }
        rest = &rest[open + length..];
    }
    Ok(entries)
}

fn without_comments(text: &str) -> String {
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_string();
    text.lines().map(code).collect::<Vec<_>>().join("\n")
}

/// Bytes from an opening brace to past its closing one.
fn body_length(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

fn entry(head: &str, body: &str, module_shared: &[Variable]) -> Result<Entry, String> {
    let after = head.split(".entry").nth(1).unwrap_or_default();
    let (name, parameters) = after.split_once('(').ok_or_else(|| format!("a kernel without parameters: `{head}`"))?;
    let parameters = parameters.split(')').next().unwrap_or_default();
    let parameters = parameters.split(',').map(str::trim).filter(|text| !text.is_empty());
    let mut entry = Entry {
        name: name.trim().to_string(),
        parameters: parameters.map(variable).collect::<Result<_, _>>()?,
        statements: Vec::new(),
        labels: HashMap::new(),
        local: Vec::new(),
        shared: module_shared.to_vec(),
    };
    for piece in body.split(';') {
        let mut piece = piece.trim();
        // Labels stand before a statement, on lines of their own.
        while let Some((label, after)) = piece.split_once(':') {
            if !label.starts_with('$') || label.contains(char::is_whitespace) {
                break;
            }
            entry.labels.insert(label.to_string(), entry.statements.len());
            piece = after.trim();
        }
        match piece.split_whitespace().next() {
            None | Some(".reg" | ".pragma" | ".loc") => {}
            Some(".local") => entry.local.push(variable(piece)?),
            Some(".shared") => entry.shared.push(variable(piece)?),
            Some(directive) if directive.starts_with('.') => return Err(format!("not supported: `{piece}`")),
            Some(_) => entry.statements.push(statement(piece)),
        }
    }
    // A length that a launch gives can only be that of the last.
    entry.shared.sort_by_key(|variable| variable.bytes == 0);
    Ok(entry)
}

/// `.param .align 8 .b8 name[32]`, `.param .u64 .ptr .global .align 1 name`, `.local .align 4 .b8 name[16]`.
fn variable(text: &str) -> Result<Variable, String> {
    let error = || format!("not understood: `{text}`");
    let words: Vec<&str> = text.split_whitespace().collect();
    let declared = words.last().ok_or_else(error)?;
    let (name, count) = match declared.split_once('[') {
        Some((name, "]")) => (name, 0),
        Some((name, count)) => (name, count.trim_end_matches(']').parse().map_err(|_| error())?),
        None => (*declared, 1),
    };
    let element = words.iter().find_map(|word| bytes_of(word)).ok_or_else(error)?;
    let aligned = words.iter().position(|&word| word == ".align" && !text.contains(".ptr"));
    let alignment = match aligned {
        Some(at) => words.get(at + 1).and_then(|word| word.parse().ok()).ok_or_else(error)?,
        None => element,
    };
    Ok(Variable { name: name.to_string(), bytes: element * count, alignment })
}

/// The size of `.b8` to `.f64`.
fn bytes_of(word: &str) -> Option<usize> {
    let bits = word.strip_prefix(['.'])?.strip_prefix(['b', 'u', 's', 'f'])?;
    matches!(bits, "8" | "16" | "32" | "64").then(|| bits.parse::<usize>().ok().map(|bits| bits / 8)).flatten()
}

fn statement(text: &str) -> Statement {
    let (guard, text) = match text.strip_prefix('@') {
        Some(guarded) => {
            let (predicate, rest) = guarded.split_once(char::is_whitespace).unwrap_or((guarded, ""));
            let negated = predicate.starts_with('!');
            (Some((predicate.trim_start_matches('!').to_string(), negated)), rest.trim())
        }
        None => (None, text),
    };
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let operands = split(&text[end..]);
    Statement { guard, operation: text[..end].to_string(), operands }
}

/// At commas outside of braces, and before a bracket: `[%rd1],{%r1, %r2}, %r3` and `%r1|%p1` alike.
pub(crate) fn split(text: &str) -> Vec<String> {
    let (mut depth, mut parts, mut part) = (0, Vec::new(), String::new());
    for character in text.chars() {
        match character {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            _ => {}
        }
        if character == ',' && depth == 0 {
            parts.push(part.trim().to_string());
            part.clear();
        } else {
            part.push(character);
        }
    }
    if !part.trim().is_empty() {
        parts.push(part.trim().to_string());
    }
    parts
}
