import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * `npm run api`: writes etc/cellkeep.api.txt, the public types of the package: what each entry point exports, and
 * every declaration that those reach, as the compiler emits them. `--check` writes nothing and fails if the report
 * is stale, so that no change to the public types goes unseen.
 */
const root = fileURLToPath(new URL('..', import.meta.url))
const report = join(root, 'etc', 'cellkeep.api.txt')

type Target = { file: string; name: string }
type Module = {
  /** Statements by the name that they declare; overloads have several. */
  declared: Map<string, string[]>
  /** Names from other modules, imported or exported again. */
  linked: Map<string, Target>
  /** Names that importers see. */
  exported: Set<string>
  /** Modules of `export *`. */
  stars: string[]
}

const declaration =
  /^(export )?(?:default )?(?:declare )?(?:abstract )?(?:const|let|function|class|type|interface|enum|namespace) ([\w$]+)/
const link = /^(import|export) (?:type )?\{([^}]*)\}(?: from ['"]([^'"]+)['"])?/
const star = /^export (?:type )?\* from ['"](\.[^'"]+)['"]/
const inlineImport = /import\("([^"]+)"\)\.([\w$]+)/g

const pathFrom = (file: string, specifier: string): string =>
  join(dirname(file), specifier.replace(/\.[jt]s$/, '.d.ts'))

/** The compiler begins each statement, and nothing else but closing brackets, at the start of a line. */
function parse(file: string): Module {
  const text = readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\//g, '')
  const module: Module = { declared: new Map(), linked: new Map(), exported: new Set(), stars: [] }
  for (const statement of text.split(/^(?=(?:export|import|declare|abstract|type|interface|class)\b)/m)) {
    const [, from] = star.exec(statement) ?? []
    if (from) module.stars.push(pathFrom(file, from))
    const [, word, names = '', specifier] = link.exec(statement) ?? []
    for (const [, name = '', alias = name] of names.matchAll(/(?:\btype )?([\w$]+)(?: as ([\w$]+))?/g)) {
      if (word === 'export') module.exported.add(alias)
      const isOurs = specifier === undefined ? name !== alias : specifier.startsWith('.')
      if (isOurs) module.linked.set(alias, { file: specifier ? pathFrom(file, specifier) : file, name })
    }
    const [, exported, name] = declaration.exec(statement) ?? []
    if (name === undefined) continue
    if (exported) module.exported.add(name)
    module.declared.set(name, [...(module.declared.get(name) ?? []), statement.trim()])
  }
  return module
}

const modules = new Map<string, Module>()
function load(file: string): Module {
  const module = modules.get(file) ?? parse(file)
  modules.set(file, module)
  return module
}

const exportsOf = (file: string): string[] => {
  const { exported, stars } = load(file)
  return [...new Set([...exported, ...stars.flatMap(exportsOf)])].sort()
}

/** Texts of the declarations reached so far, by file and name. */
const reached = new Map<string, string>()

function reach({ file, name }: Target): void {
  const { declared, linked, stars } = load(file)
  const further = linked.get(name)
  if (further) reach(further)
  const statements = declared.get(name)
  if (!further && !statements) for (const star of stars) reach({ file: star, name })
  const key = `${name} ${file}`
  if (!statements || reached.has(key)) return
  reached.set(key, statements.map(shown).join('\n'))
  for (const statement of statements) {
    for (const [, specifier = '', imported = ''] of statement.matchAll(inlineImport))
      if (specifier.startsWith('.')) reach({ file: pathFrom(file, specifier), name: imported })
    // Names of members are followed by a colon or bracket, and quoted text is no name.
    const bare = statement.replace(inlineImport, '').replace(/'[^'\n]*'|"[^"\n]*"/g, '')
    for (const [used] of bare.matchAll(/(?<![\w$.])[A-Za-z_$][\w$]*(?![\w$]|\??:|\()/g))
      if (declared.has(used) || linked.has(used)) reach({ file, name: used })
  }
}

const shown = (statement: string): string =>
  statement
    .replace(/^(export )?(declare )?/, '')
    .replace(inlineImport, '$2')
    .replace(/^\s*\n/gm, '')

function makeReport(declarations: string): string {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const entries = Object.entries<{ types?: string }>(exports).flatMap(([path, { types }]) =>
    types ? [{ path, file: join(declarations, types.replace('./dist/', '')) }] : [],
  )
  const lists = entries.map(({ path, file }) => {
    const names = exportsOf(file)
    for (const name of names) reach({ file, name })
    return [join('cellkeep', path), ...names.map((name) => `  ${name}`)].join('\n')
  })
  const texts = [...reached].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text)
  const head =
    'The public types of the package, generated by `npm run api`: exports by entry point, then all types.'
  return `${[head, ...lists, ...texts].join('\n\n')}\n`
}

const declarations = mkdtempSync(join(tmpdir(), 'ck-api-'))
try {
  const compiler = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')))
  const options = ['-p', 'tsconfig.build.json', '--emitDeclarationOnly', '--outDir', declarations]
  execFileSync(process.execPath, [compiler, ...options], { cwd: root, stdio: 'inherit' })
  const text = makeReport(declarations)
  if (!process.argv.includes('--check')) {
    mkdirSync(dirname(report), { recursive: true })
    writeFileSync(report, text)
  } else if (readFileSync(report, 'utf8') !== text) {
    console.error(
      'The public types have changed: run npm run api, and look at the difference in etc/cellkeep.api.txt.',
    )
    process.exitCode = 1
  }
} finally {
  rmSync(declarations, { recursive: true, force: true })
}
