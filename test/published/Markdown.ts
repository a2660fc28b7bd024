import { format } from "oxfmt"

/** The text of a table cell, escaped so that it ends neither its row nor its column. */
const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ")

export const table = (heads: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [heads, heads.map(() => "---"), ...rows].map((row) => `| ${row.map(cell).join(" | ")} |`).join("\n")

export const fence = (language: string, code: string): string => `\`\`\`${language}\n${code}\n\`\`\``

/** The text as the project's formatter writes it. */
export const formatted = async (file: string, text: string): Promise<string> => {
  const { code, errors } = await format(file, text, { printWidth: 120, semi: false, trailingComma: "none" })
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join("\n"))
  return code
}

export const page = (paragraphs: ReadonlyArray<string>): Promise<string> =>
  formatted("page.md", `${paragraphs.filter((one) => one !== "").join("\n\n")}\n`)
