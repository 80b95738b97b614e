/** One thing that is wrong with an installation, and what to do about it. */
export type Finding = { finding: string; what: string; remedy: string }
