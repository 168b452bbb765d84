import { Text } from '@mantine/core';
import { Component, lazy, type ReactNode, Suspense } from 'react';
import { isBoundedMarkdown } from './markdown-bounds.ts';

/** Loaded with the first answer: the parser is not needed before. */
const AnswerMarkdown = lazy(() =>
  import('./answer-markdown.tsx').then((module) => ({ default: module.AnswerMarkdown })),
);

/** A model's answer: rendered as Markdown, or as plain text if that is not possible. */
export function AnswerText({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  const plain = <Text className="said">{text}</Text>;
  if (!isBoundedMarkdown(text, isGrowing)) return plain;
  return (
    <OrElse fallback={plain}>
      <Suspense fallback={plain}>
        <AnswerMarkdown text={text} />
      </Suspense>
    </OrElse>
  );
}

/** Shows a fallback for content that could not be rendered. */
class OrElse extends Component<{ fallback: ReactNode; children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError(): { hasFailed: boolean } {
    return { hasFailed: true };
  }

  override render(): ReactNode {
    return this.state.hasFailed ? this.props.fallback : this.props.children;
  }
}
