//! What a policy's settings may be.

/// A setting that a policy can't decide with.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// A number outside its range.
    #[error("{policy}: {setting} is {value}, but must be {expected}")]
    OutOfRange {
        /// The policy's name.
        policy: &'static str,
        /// The setting's name.
        setting: &'static str,
        /// Its value.
        value: f64,
        /// What would be right.
        expected: &'static str,
    },
}

/// Checks the settings of one policy, in turn.
pub(crate) struct Settings(pub(crate) &'static str);

impl Settings {
    pub(crate) fn at_least(&self, least: usize, setting: &'static str, value: usize) -> Result<(), SettingError> {
        let expected = if least == 1 { "at least 1" } else { "at least 2" };
        self.require(value >= least, setting, value as f64, expected)
    }

    pub(crate) fn finite(&self, setting: &'static str, value: f64) -> Result<(), SettingError> {
        self.require(value.is_finite(), setting, value, "a finite number")
    }

    /// Over 0 and at most 1.
    pub(crate) fn share(&self, setting: &'static str, value: f64) -> Result<(), SettingError> {
        self.require(value > 0.0 && value <= 1.0, setting, value, "over 0 and at most 1")
    }

    pub(crate) fn require(
        &self,
        right: bool,
        setting: &'static str,
        value: f64,
        expected: &'static str,
    ) -> Result<(), SettingError> {
        if right { Ok(()) } else { Err(SettingError::OutOfRange { policy: self.0, setting, value, expected }) }
    }
}
