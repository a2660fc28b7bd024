import { format } from "oxfmt"

/** Text of a cell, which ends neither its row nor its column. */
const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ")

export const table = (heads: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [heads, heads.map(() => "---"), ...rows].map((row) => `| ${row.map(cell).join(" | ")} |`).join("\n")

export const fence = (language: string, code: string): string => `\`\`\`${language}\n${code}\n\`\`\``

/** Paragraphs as the project's formatter leaves them. */
export const page = async (parts: ReadonlyArray<string>): Promise<string> => {
  const { code, errors } = await format("page.md", `${parts.filter((part) => part !== "").join("\n\n")}\n`, {
    printWidth: 120
  })
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join("\n"))
  return code
}
