/**
 * An address in the form that addresses are compared in. Only A to Z are folded: the lower case of other letters may be one of a to z
 * (that of the Kelvin sign is k), and an address of somebody else would become that of an administrator.
 */
export const foldAddress = (address: string): string => address.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
