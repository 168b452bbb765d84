import { Anchor, Box, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import Markdown, { type Components } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import { CodeBlock } from '../../../components/code-block.tsx';
import classes from './answer-markdown.module.css';

/** Where links of an answer may lead to. */
const linkProtocols: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:']);

/**
 * A model's Markdown. It may be anybody's: a page that the model has read can have told it what to write. So no HTML of it is
 * rendered, nothing of it is loaded (a picture's address could carry off what was said), and its links lead to whole
 * addresses of other pages only, when they are clicked.
 */
export function AnswerMarkdown({ text }: { text: string }) {
  return (
    <Box className={classes.markdown}>
      <Markdown remarkPlugins={plugins} components={components} allowedElements={allowed} unwrapDisallowed>
        {text}
      </Markdown>
    </Box>
  );
}

const plugins = [remarkGfm];

const allowed = [
  ...['p', 'br', 'hr', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'blockquote', 'ul', 'ol', 'li', 'section'],
  ...['em', 'strong', 'del', 'sup', 'a', 'code', 'pre', 'img', 'input', 'table', 'thead', 'tbody', 'tr', 'th', 'td'],
];

/** Elements with custom rendering. An answer's headings rank below those of the page. */
const components: Components = {
  a: ({ href, children }) => <AnswerLink href={href}>{children}</AnswerLink>,
  img: ({ src, alt }) => (
    <AnswerLink href={typeof src === 'string' ? src : undefined}>Picture{alt ? `: ${alt}` : ''}</AnswerLink>
  ),
  // Text instead of an input, which would be inactive and unnamed.
  input: ({ checked }) => <span>{checked === true ? '☑ ' : '☐ '}</span>,
  pre: ({ node }) => <CodeBlock code={textOf(node).replace(/\n$/, '')} label="Code in the answer" />,
  h1: ({ children }) => <h3>{children}</h3>,
  h2: ({ children }) => <h4>{children}</h4>,
  h3: ({ children }) => <h5>{children}</h5>,
  h4: ({ children }) => <h6>{children}</h6>,
  h5: ({ children }) => <h6>{children}</h6>,
  table: ({ children }) => (
    // It scrolls if too wide, so it must be focusable by keyboard.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: see above
    <section className={classes.table} tabIndex={0} aria-label="Table in the answer">
      <table>{children}</table>
    </section>
  ),
};

function AnswerLink({ href, children }: { href: string | undefined; children: ReactNode }) {
  const address = href === undefined || !URL.canParse(href) ? undefined : new URL(href);
  if (address === undefined || !linkProtocols.has(address.protocol)) return <Text span>{children}</Text>;
  return (
    <Anchor
      inherit
      underline="always"
      href={address.href}
      title={address.href}
      target="_blank"
      rel="noopener noreferrer"
    >
      {children}
    </Anchor>
  );
}

interface TextNode {
  readonly value?: string;
  readonly children?: readonly object[];
}

/** The text of a part of the parsed answer. */
function textOf(node: TextNode | undefined): string {
  return node?.value ?? (node?.children ?? []).map((child) => textOf(child as TextNode)).join('');
}
