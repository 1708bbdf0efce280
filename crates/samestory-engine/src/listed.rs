//! Enums that know all their variants. A list kept by hand forgets the variant that was added last: a dead-letter reason
//! without a series at zero has an alert that never fires.

#[doc(hidden)]
#[macro_export]
/// Declares an enum with `ALL`, its variants in the order of their declaration.
macro_rules! listed {
    (
        $(#[$meta:meta])*
        $visible:vis enum $name:ident { $($(#[$about:meta])* $variant:ident),+ $(,)? }
    ) => {
        $(#[$meta])*
        $visible enum $name { $($(#[$about])* $variant),+ }

        impl $name {
            /// All of them, in the order of their declaration.
            $visible const ALL: [$name; [$(stringify!($variant)),+].len()] = [$($name::$variant),+];
        }
    };
}

#[cfg(test)]
mod tests {
    listed! {
        #[derive(Debug, PartialEq)]
        enum Season {
            Spring,
            /// The last one declared is listed too.
            Summer,
        }
    }

    #[test]
    fn every_variant_is_listed_in_its_order() {
        assert_eq!(Season::ALL, [Season::Spring, Season::Summer]);
    }
}
