"""Read-only rich text that is as high as its content and leaves scrolling to whatever holds it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, QUrl, Signal
from PySide6.QtGui import QContextMenuEvent, QResizeEvent, QTextOption, QWheelEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QWidget

_ALLOWED_LINKS = frozenset({"http", "https", "mailto"})


class FlowText(QTextBrowser):
    """A text whose height follows its width."""

    linkActivated = Signal(QUrl)

    def __init__(self, parent: QWidget | None = None, *, wraps: bool = True) -> None:
        super().__init__(parent)
        self._height = 0
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.document().setDocumentMargin(0)
        self.anchorClicked.connect(self._on_link)
        self.set_wraps(wraps)

    def set_wraps(self, wraps: bool) -> None:
        """Break long lines, or let them be scrolled sideways."""
        self.setLineWrapMode(QTextBrowser.LineWrapMode.WidgetWidth if wraps else QTextBrowser.LineWrapMode.NoWrap)
        self.setWordWrapMode(
            QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere if wraps else QTextOption.WrapMode.NoWrap
        )
        policy = Qt.ScrollBarPolicy.ScrollBarAlwaysOff if wraps else Qt.ScrollBarPolicy.ScrollBarAsNeeded
        self.setHorizontalScrollBarPolicy(policy)
        self.fit()

    def show_html(self, html: str, style: str) -> None:
        """Show other content, with `style` for its elements."""
        self.document().setDefaultStyleSheet(style)
        self.setHtml(html)
        self.fit()

    def fit(self) -> None:
        """Take the height that the content needs at this width."""
        if self.lineWrapMode() == QTextBrowser.LineWrapMode.WidgetWidth:
            self.document().setTextWidth(self.viewport().width())
        height = int(self.document().size().height() + 0.999)
        bar = self.horizontalScrollBar()
        is_wide = self.lineWrapMode() == QTextBrowser.LineWrapMode.NoWrap and (
            self.document().idealWidth() > self.viewport().width()
        )
        height += bar.sizeHint().height() if is_wide else 0
        if height != self._height:
            self._height = height
            self.setFixedHeight(max(1, height))

    def _on_link(self, url: QUrl) -> None:
        if url.scheme() in _ALLOWED_LINKS:
            self.linkActivated.emit(url)

    def minimumSizeHint(self) -> QSize:
        """As small as the layout wants."""
        return QSize(0, 0)

    def sizeHint(self) -> QSize:
        """As high as the content."""
        return QSize(200, self._height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Follow the width."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Sideways here, up and down in the transcript."""
        if abs(event.angleDelta().x()) > abs(event.angleDelta().y()) and self.horizontalScrollBar().maximum() > 0:
            super().wheelEvent(event)
        else:
            event.ignore()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Copying only."""
        menu = self.createStandardContextMenu(event.pos())
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(event.globalPos())
