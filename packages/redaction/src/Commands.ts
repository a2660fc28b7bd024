import type { IsSecretName } from "./SecretNames.ts"

/** Finds secrets in pasted commands: `curl -u name:password`, `--token x`. Each character is read only a few times. */

/** curl flags without a value may precede the `u` in one word: `-sSu name:password`. */
const flag = String.raw`-[0-46aBfgGiIjklLMnNOpqRsSvV#]{0,12}[uU][ \t]*|--(?:proxy-)?user[ \t=]+`
/** A word as a shell reads it: parts of it may be in quotes, with spaces. */
const word = String.raw`(?:"[^"\n]{0,1000}"?|'[^'\n]{0,1000}'?|\\.|[^\s"'\\]){1,1000}`
/** `-u name:password`, with or without quotes: the name is not masked. */
const userFlag = new RegExp(
  String.raw`(?<=^|\s)(${flag})(?:("[^":\n]{0,256}:)(?:\\.|[^"\\\n]){1,1000}|('[^':\n]{0,256}:)[^'\n]{1,1000}|(["']?[^\s"':]{0,256}["']?:)${word})`,
  "g"
)
/** `--name value`; a value after `=` is found by its name, as in any text. */
const namedFlag =
  /(?<=^|\s)(--?([a-zA-Z][\w-]{1,63})[ \t]+)("[^"\n]{1,1000}"?|'[^'\n]{1,1000}'?|[^\s"'-][^\s"']{0,1000})/g

export const commandSecretsRemoved = (text: string, isSecret: IsSecretName, mask: string): string =>
  text.includes("-")
    ? text
        .replaceAll(
          userFlag,
          (_, before: string, quoted?: string, single?: string, bare?: string) =>
            `${before}${quoted ?? single ?? bare ?? ""}${mask}`
        )
        .replaceAll(namedFlag, (whole, flag: string, name: string) => (isSecret(name) ? flag + mask : whole))
    : text
