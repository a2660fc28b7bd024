import type { IsSecretName } from "./SecretNames.ts"

/** Secrets in commands that somebody has pasted: `curl -u name:password`, `--token x`. Each character is looked at a few times. */

/** `-u name:password`, with or without quotes: the name stays. */
const userFlag = /(?<=^|\s)(-[uU][ \t]*|--(?:proxy-)?user[ \t=]+)(["']?)([^\s"':]{0,256}:)([^\s"']{1,1000})/g
/** `--name value`; behind `=` a value is found by its name, as anywhere. */
const namedFlag =
  /(?<=^|\s)(--?([a-zA-Z][\w-]{1,63})[ \t]+)("[^"\n]{1,1000}"?|'[^'\n]{1,1000}'?|[^\s"'-][^\s"']{0,1000})/g

export const commandSecretsRemoved = (text: string, isSecret: IsSecretName, mask: string): string =>
  text.includes("-")
    ? text
        .replaceAll(userFlag, (_, flag: string, quote: string, name: string) => flag + quote + name + mask)
        .replaceAll(namedFlag, (whole, flag: string, name: string) => (isSecret(name) ? flag + mask : whole))
    : text
