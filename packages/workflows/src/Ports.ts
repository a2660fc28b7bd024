/**
 * The ports of a kind of step, without `error`. They are data, because the API's document tells them to editors: always the same ones,
 * by the value of a member of the config, or one for each element of a list in the config.
 */
export type Ports =
  | ReadonlyArray<string>
  | { readonly by: string; readonly of: Readonly<Record<string, ReadonlyArray<string>>> }
  /** `prefix`, and the element's member `key`. */
  | { readonly each: string; readonly key: string; readonly prefix: string }

const isFixed = (ports: Ports): ports is ReadonlyArray<string> => Array.isArray(ports)

/** The ports of a step with this config, which is one of its kind. */
export const portsOf = (ports: Ports, config: unknown): ReadonlyArray<string> => {
  if (isFixed(ports)) return ports
  const members = config as Readonly<Record<string, unknown>>
  if ("by" in ports) return ports.of[members[ports.by] as string] ?? []
  const elements = members[ports.each] as ReadonlyArray<Readonly<Record<string, unknown>>>
  return elements.map((element) => `${ports.prefix}${element[ports.key] as string}`)
}
