//! Enums that know all their variants. A list maintained by hand misses the variant added last: a dead-letter
//! reason without a series at zero has an alert that never fires.

#[doc(hidden)]
#[macro_export]
/// Declares an enum with `ALL`, its variants in declaration order.
macro_rules! listed {
    (
        $(#[$meta:meta])*
        $visible:vis enum $name:ident { $($(#[$about:meta])* $variant:ident),+ $(,)? }
    ) => {
        $(#[$meta])*
        $visible enum $name { $($(#[$about])* $variant),+ }

        impl $name {
            /// Every variant, in declaration order.
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
            /// The last variant is listed too.
            Summer,
        }
    }

    #[test]
    fn every_variant_is_listed_in_declaration_order() {
        assert_eq!(Season::ALL, [Season::Spring, Season::Summer]);
    }
}
