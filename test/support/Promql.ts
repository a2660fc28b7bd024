import type { SyntaxNode } from "@lezer/common"
import { parser } from "@prometheus-io/lezer-promql"

/** The metrics and labels that a Prometheus query reads, to compare them with the metrics of the gateway. */
export interface Selector {
  readonly metric: string
  readonly matchers: ReadonlyArray<{ readonly label: string; readonly value: string }>
  /** Labels by which the sums around this selector group, if there is one. */
  readonly grouping: ReadonlyArray<string>
  readonly isGrouped: boolean
}

const children = (node: SyntaxNode, name: string): ReadonlyArray<SyntaxNode> => node.getChildren(name)

/** The selectors of a query. Throws where the query is not valid PromQL. */
export const selectorsOf = (query: string): ReadonlyArray<Selector> => {
  const textOf = ({ from, to }: SyntaxNode): string => query.slice(from, to)
  const found: Array<Selector> = []
  const labelsOf = (aggregate: SyntaxNode): ReadonlyArray<string> => {
    const grouping = aggregate.getChild("AggregateModifier")?.getChild("GroupingLabels")
    return grouping === null || grouping === undefined ? [] : children(grouping, "LabelName").map(textOf)
  }
  const visit = (node: SyntaxNode, aggregates: ReadonlyArray<SyntaxNode>): void => {
    if (node.type.isError) throw new Error(`Not valid PromQL at "${query.slice(node.from, node.from + 20)}": ${query}`)
    const around = node.name === "AggregateExpr" ? [...aggregates, node] : aggregates
    if (node.name === "VectorSelector") {
      const name = node.getChild("Identifier")
      if (name === null) throw new Error(`A selector names no metric: ${query}`)
      const matchers = node.getChild("LabelMatchers")
      found.push({
        metric: textOf(name),
        matchers: (matchers === null ? [] : children(matchers, "UnquotedLabelMatcher")).map((matcher) => ({
          label: textOf(matcher.getChild("LabelName")!),
          value: JSON.parse(textOf(matcher.getChild("StringLiteral")!)) as string
        })),
        grouping: around.flatMap(labelsOf),
        isGrouped: around.length > 0
      })
    }
    for (let child = node.firstChild; child !== null; child = child.nextSibling) visit(child, around)
  }
  visit(parser.parse(query).topNode, [])
  return found
}
