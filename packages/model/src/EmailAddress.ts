/**
 * An address in the form for comparison. Only A to Z are folded. The lower case of some other letters is one of a to z (that of
 * the Kelvin sign is k): another person's address could become equal to an administrator's.
 */
export const foldAddress = (address: string): string => address.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
