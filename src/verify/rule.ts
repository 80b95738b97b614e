/** What must hold for each row of a table. */
export type Rule = {
  /** The group of the judgement, such as V8 for the audit log. */
  check: string
  finding: string
  table: string
  /** Describes the rows that break it, and follows their number: `12 rows of cell_grant …`. */
  what: string
  /** True for a bad row `t`: an SQL condition, or code over these columns. */
  broken: string | { columns: readonly string[]; isBroken(row: Record<string, string | null>): boolean }
}

/** Rules by finding. */
export type Findings = Record<string, [what: Rule['what'], broken: Rule['broken']]>

/** What was found, and what to do about it. */
export type Judgement = { check: string; finding: string; what: string; remedy: string }
