/** The texts of several processes in Prometheus' format as one text. Each series gets the label `process`. */
export const merged = (texts: ReadonlyMap<number, string>): string => {
  /** The lines of each metric, because the format requires them to follow each other. */
  const families = new Map<string, { readonly about: Array<string>; readonly series: Array<string> }>()
  for (const [id, text] of texts) {
    let name = ""
    for (const line of text.split("\n")) {
      if (line === "") continue
      const about = /^# (?:HELP|TYPE) (\S+)/.exec(line)
      if (about !== null) name = about[1]!
      const family = families.get(name) ?? { about: [], series: [] }
      families.set(name, family)
      if (about === null) family.series.push(labelled(line, id))
      else if (!family.about.includes(line)) family.about.push(line)
    }
  }
  const lines = [...families.values()].flatMap(({ about, series }) => about.concat(series))
  return lines.length === 0 ? "" : `${lines.join("\n")}\n`
}

const labelled = (line: string, id: number): string => {
  const [, name, rest] = /^([a-zA-Z_:][\w:]*)(.*)$/.exec(line)!
  return rest!.startsWith("{}")
    ? `${name}{process="${id}"}${rest!.slice(2)}`
    : rest!.startsWith("{")
      ? `${name}{process="${id}",${rest!.slice(1)}`
      : `${name}{process="${id}"}${rest}`
}
