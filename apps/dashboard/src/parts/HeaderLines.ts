type Headers = Record<string, string | Array<string>>

/** Headers as a reader writes them: `name: value` in each line, and a name again for each further value. */
export const headerLines = (headers: Readonly<Record<string, unknown>>): string =>
  Object.entries(headers)
    .flatMap(([name, value]) => [value].flat().map((one) => `${name}: ${String(one)}`))
    .join("\n")

/** The headers of such lines, by their names in lower case. */
export const headersIn = (text: string): Headers => {
  const headers = new Map<string, Array<string>>()
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue
    const [, name, value] = /^\s*([^\s:]+)\s*:(.*)$/.exec(line) ?? []
    if (name === undefined || value === undefined) {
      throw new Error(`This is no header: “${line.trim().slice(0, 60)}”. Write a name, a colon and a value.`)
    }
    const key = name.toLowerCase()
    headers.set(key, [...(headers.get(key) ?? []), value.trim()])
  }
  return Object.fromEntries([...headers].map(([name, values]) => [name, values.length === 1 ? values[0]! : values]))
}
