import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from '@codemirror/language'
import { lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint'
import { search, searchKeymap } from '@codemirror/search'
import { EditorState } from '@codemirror/state'
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view'
import { tags } from '@lezer/highlight'

export type Mark = { from: number; to: number; message: string }

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--soft)' },
  { tag: tags.string, color: 'var(--ok)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--accent)' },
  { tag: tags.invalid, color: 'var(--bad)' },
])

const look = EditorView.theme({
  '&': {
    border: '1px solid var(--edge)',
    borderRadius: '4px',
    background: 'var(--bg)',
    color: 'var(--text)',
    font: 'var(--code)',
  },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '2px' },
  '.cm-scroller': { font: 'inherit', minHeight: '240px', maxHeight: 'max(240px, calc(100dvh - 300px))' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-cursor': { borderColor: 'var(--text)' },
  '.cm-gutters': { background: 'var(--raised)', color: 'var(--soft)', borderColor: 'var(--line)' },
  '.cm-activeLine': { background: 'color-mix(in oklab, var(--sunken) 60%, transparent)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'color-mix(in oklab, var(--accent) 28%, transparent)',
  },
  '.cm-panels, .cm-tooltip': {
    background: 'var(--raised)',
    color: 'var(--text)',
    borderColor: 'var(--line)',
  },
  '.cm-textfield': { background: 'var(--bg)', color: 'inherit', borderColor: 'var(--edge)' },
  '.cm-button': { background: 'var(--bg)', color: 'inherit', borderColor: 'var(--edge)' },
  '.cm-specialChar': { color: 'var(--warn)' },
})

/**
 * An editor of JSON. In a shadow root its style sheets are adopted, which the policy of the server allows; in the
 * document they would be `<style>` elements. Tab indents; after Escape it leaves, until the editor is entered again.
 */
export function openEditor(
  host: HTMLElement,
  { text, label, onInput }: { text: string; label: string; onInput(text: string): void },
) {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open', delegatesFocus: true })
  const leaveByTab = (view: EditorView): boolean => {
    view.setTabFocusMode(true)
    return false
  }
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        foldGutter(),
        lintGutter(),
        highlightSpecialChars(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        highlightActiveLine(),
        search({ top: true }),
        json(),
        syntaxHighlighting(colours),
        EditorView.lineWrapping,
        EditorState.tabSize.of(2),
        look,
        EditorView.contentAttributes.of({
          'aria-label': label,
          tabindex: '0',
          spellcheck: 'false',
          autocapitalize: 'none',
        }),
        EditorView.domEventHandlers({
          focus: (_event, view) => {
            view.setTabFocusMode(false)
          },
        }),
        EditorView.updateListener.of(({ docChanged, state }) => docChanged && onInput(state.doc.toString())),
        keymap.of([
          ...searchKeymap,
          { key: 'Escape', run: leaveByTab },
          ...defaultKeymap,
          ...historyKeymap,
          ...foldKeymap,
          ...lintKeymap,
          indentWithTab,
        ]),
      ],
    }),
  })
  return {
    mark(marks: readonly Mark[]): void {
      const end = view.state.doc.length
      const within = marks.map(({ from, to, message }) => ({
        from: Math.min(from, end),
        to: Math.min(to, end),
        message,
        severity: 'error' as const,
      }))
      view.dispatch(setDiagnostics(view.state, within))
    },
    goTo(from: number): void {
      view.dispatch({ selection: { anchor: Math.min(from, view.state.doc.length) }, scrollIntoView: true })
      view.focus()
    },
    focus: (): void => view.focus(),
    close: (): void => view.destroy(),
  }
}

export type CodeEditor = ReturnType<typeof openEditor>
