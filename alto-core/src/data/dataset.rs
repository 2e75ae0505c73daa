//! Tokenized rows, and the micro-batches that jobs take from them.

use std::path::{Path, PathBuf};

use super::error::{DataError, Place};
use super::jsonl::{Row, read_rows};
use super::order::Orders;
use super::tokenizer::Tokenizer;
use crate::batch::Example;
use crate::job::{AccumulationMode, Job};

/// Tokenized rows to train or evaluate on.
///
/// How a row's text becomes an [`Example`] is settled when it is read: whoever takes micro-batches sees token ids and
/// targets only.
#[derive(Debug)]
pub struct Dataset {
    path: Option<PathBuf>,
    /// At least one; each has a labelled token.
    examples: Vec<Example>,
    truncated: Vec<Cut>,
    labelled_bytes: Option<u64>,
    orders: Orders,
}

/// A row whose completion didn't fit the context and was cut off at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Its line in the file, from 1.
    pub line: usize,
    /// The tokens it would have had; as many as the context has are left.
    pub tokens: usize,
}

impl Dataset {
    /// Reads a JSONL file of rows `{"prompt": "...", "completion": "..."}`.
    ///
    /// The loss is on the completion and the ending token behind it; [`Tokenizer::encode_pair`] says where the two
    /// meet. A completion that doesn't fit into `context` tokens is cut off and listed in
    /// [`truncated`](Self::truncated).
    ///
    /// # Errors
    /// Names the first line that is broken, empty, has no completion, or whose prompt alone fills the context.
    pub fn read(path: &Path, tokenizer: &Tokenizer, context: usize) -> Result<Self, DataError> {
        let (mut examples, mut truncated, mut bytes) = (vec![], vec![], 0);
        read_rows(path, |place, row| {
            bytes += row.completion.len() as u64;
            let line = place.line;
            let (example, tokens) = example(place, &row, tokenizer, context)?;
            if tokens > context {
                truncated.push(Cut { line, tokens });
            }
            examples.push(example);
            Ok(())
        })?;
        if let Some(first) = truncated.first() {
            let (rows, line) = (truncated.len(), first.line);
            tracing::warn!(path = %path.display(), rows, line, context, "completions are cut off by the context");
        }
        // Of a completion that is cut off, nobody knows how many bytes the tokens left stand for.
        let labelled_bytes = truncated.is_empty().then_some(bytes);
        Self::new(Some(path.to_owned()), examples, truncated, labelled_bytes)
    }

    /// A data set of these examples.
    ///
    /// # Errors
    /// When there are none, or one has no labelled token or not as many targets as tokens.
    pub fn from_examples(examples: Vec<Example>) -> Result<Self, DataError> {
        Self::new(None, examples, vec![], None)
    }

    fn new(
        path: Option<PathBuf>,
        examples: Vec<Example>,
        truncated: Vec<Cut>,
        labelled_bytes: Option<u64>,
    ) -> Result<Self, DataError> {
        if examples.is_empty() {
            return Err(DataError::NoRows { path });
        }
        for (index, example) in examples.iter().enumerate() {
            let (tokens, labelled) = (example.tokens.len(), example.labelled());
            if labelled == 0 || example.targets.len() != tokens {
                return Err(DataError::BadExample { place: Place { path, line: index + 1 }, tokens, labelled });
            }
        }
        Ok(Self { path, examples, truncated, labelled_bytes, orders: Orders::default() })
    }

    /// All examples, in the file's order.
    pub fn examples(&self) -> &[Example] {
        &self.examples
    }

    /// The rows whose completion is cut off.
    pub fn truncated(&self) -> &[Cut] {
        &self.truncated
    }

    /// Bytes of UTF-8 text that the labelled tokens stand for, where that is known: read from text, and none cut off.
    pub fn labelled_bytes(&self) -> Option<u64> {
        self.labelled_bytes
    }

    /// Checks that the model has every token.
    ///
    /// # Errors
    /// Names the first row with a token id of `vocabulary` or more.
    pub fn check_vocabulary(&self, vocabulary: usize) -> Result<(), DataError> {
        for (index, example) in self.examples.iter().enumerate() {
            let mut tokens = example.tokens.iter().chain(example.targets.iter().flatten());
            if let Some(&token) = tokens.find(|&&token| token as usize >= vocabulary) {
                let place = Place { path: self.path.clone(), line: index + 1 };
                return Err(DataError::TokenOutOfRange { place, token, vocabulary });
            }
        }
        Ok(())
    }

    /// The rows of micro-batch `micro` of the step with index `step` (both from 0): samples
    /// `(step * accumulation + micro) * batch` and on, in the order that the job's seed gives.
    pub fn micro_batch(&self, job: &Job, step: u64, micro: usize) -> Vec<&Example> {
        let first = (step * job.accumulation as u64 + micro as u64) * job.batch as u64;
        self.samples(job, first, job.batch)
    }

    /// What that micro-batch's summed loss is divided by.
    ///
    /// With [`AccumulationMode::TokenMean`] it is the labelled tokens of the whole step, the same for each of its
    /// micro-batches; with [`AccumulationMode::MeanOfMeans`] the micro-batch's own times their number.
    pub fn divisor(&self, job: &Job, step: u64, micro: usize) -> f64 {
        let labelled = |rows: Vec<&Example>| rows.iter().map(|row| row.labelled()).sum::<usize>() as f64;
        match job.accumulation_mode {
            AccumulationMode::TokenMean => labelled(self.samples(job, job.samples(step), job.batch * job.accumulation)),
            AccumulationMode::MeanOfMeans => labelled(self.micro_batch(job, step, micro)) * job.accumulation as f64,
        }
    }

    fn samples(&self, job: &Job, first: u64, count: usize) -> Vec<&Example> {
        let samples = self.orders.samples(job.seed, self.examples.len(), first, count);
        samples.into_iter().map(|row| &self.examples[row]).collect()
    }
}

/// The row's example, cut to the context, and the tokens that it would have without that.
fn example(place: Place, row: &Row, tokenizer: &Tokenizer, context: usize) -> Result<(Example, usize), DataError> {
    let (mut tokens, completion) = tokenizer
        .encode_pair(&row.prompt, &row.completion)
        .map_err(|source| DataError::EncodeRow { place: place.clone(), source: Box::new(source) })?;
    let prompt = tokens.len();
    if prompt >= context {
        return Err(DataError::PromptTooLong { place, tokens: prompt, context });
    }
    tokens.extend(completion);
    let whole = tokens.len();
    tokens.truncate(context);
    let label = |(at, &token)| if at < prompt { -1 } else { i64::from(token) };
    let labels: Vec<i64> = tokens.iter().enumerate().map(label).collect();
    Ok((Example::from_labels(&tokens, &labels), whole))
}
