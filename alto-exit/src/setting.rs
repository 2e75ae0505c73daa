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
        let expected = match least {
            1 => "at least 1",
            2 => "at least 2",
            _ => "at least 4",
        };
        self.require(value >= least, setting, value as f64, expected)
    }

    pub(crate) fn finite(&self, setting: &'static str, value: f64) -> Result<(), SettingError> {
        self.require(value.is_finite(), setting, value, "a finite number")
    }

    pub(crate) fn not_negative(&self, setting: &'static str, value: f64) -> Result<(), SettingError> {
        self.require(value.is_finite() && value >= 0.0, setting, value, "a finite number, at least 0")
    }

    /// A progress before which something is left alone: from 0 to 1.
    pub(crate) fn progress(&self, setting: &'static str, value: f64) -> Result<(), SettingError> {
        self.require((0.0..=1.0).contains(&value), setting, value, "from 0 to 1")
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

/// Reads and writes the settings of a policy that derives both with `#[serde(remote = "Self")]`: read settings are
/// checked, and an error names the policy.
macro_rules! checked {
    ($policy:ident $(<$inner:ident>)?, $name:literal) => {
        impl<'de $(, $inner: serde::Deserialize<'de> + crate::policy::ExitPolicy)?> serde::Deserialize<'de>
            for $policy $(<$inner>)?
        {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                use serde::de::Error;
                // The derived one, which is inherent.
                let policy =
                    Self::deserialize(from).map_err(|error| D::Error::custom(format_args!("{}: {error}", $name)))?;
                crate::policy::ExitPolicy::check(&policy).map_err(D::Error::custom)?;
                Ok(policy)
            }
        }

        impl $(<$inner: serde::Serialize>)? serde::Serialize for $policy $(<$inner>)? {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, to)
            }
        }
    };
}

pub(crate) use checked;
