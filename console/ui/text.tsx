/** Characters that hide, reverse or break the text beside them; a joiner between emoji does none of that. */
const odd =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  /([\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]|\u200d(?!\p{ExtPict})|(?<!\p{ExtPict}[\ufe0f\u{1f3fb}-\u{1f3ff}]?)\u200d)/u

/** Nothing odd, and no marks: most of what is shown. */
const usual = /^[ -~\u00a0-\u00ac\u00ae-\u02ff]*$/

/** Text written by people and programs, kept from changing what is around it. */
export function Text({ children, long = false }: { children: string; long?: boolean }) {
  return (
    <bdi class={long ? 'text is-long' : 'text'} title={long ? undefined : plain(children.slice(0, 300))}>
      {usual.test(children) ? children : partsOf(children, long)}
    </bdi>
  )
}

const partsOf = (text: string, long: boolean) =>
  text.split(odd).map((part, index) => (index % 2 ? shown(part, long) : calm(part)))

function shown(character: string, long: boolean) {
  if (long && /[\n\t]/.test(character)) return character
  return <span class="chip">{codeOf(character)}</span>
}

const codeOf = (character: string): string =>
  `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`

/** The same where only text fits, as in the options of a list. */
export const plain = (text: string): string =>
  text
    .split(odd)
    .map((part, index) => (index % 2 ? codeOf(part) : calm(part)))
    .join('')

/** Max four marks on a letter: a thousand of them would cover the lines above. */
const calm = (text: string): string => text.replace(/(\p{M}{4})\p{M}+/gu, '$1')

/** Whether a person can type it as it is shown. */
export const isTypable = (text: string): boolean =>
  text.length <= 80 && !odd.test(text) && calm(text) === text
